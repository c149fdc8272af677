"""One notebook open in one browser tab, in JupyterLab or in Notebook 7: what a person does there, as methods."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Literal
from uuid import uuid4

import nbformat
from playwright.sync_api import Locator, Page, expect

from tests.e2e.server import JupyterServer

FrontEnd = Literal["lab", "notebook"]

TIMEOUT = 30_000.0  # milliseconds, for anything that is waited for
# What the browser logs that says nothing about the notebook: resources that a server without a network does not have.
IGNORED_CONSOLE = re.compile(r"favicon|Failed to load resource|WebSocket connection to .* failed|lsp")
# Notebook 7.6 logs these on its own while it starts.
IGNORED_UNCAUGHT = (
    "Cannot read properties of undefined (reading 'schema')",
    "Command 'filebrowser:open-path' not registered.",
)
# Resolves when the notebook's kernel has answered its first question; the indicator alone says "idle" before that.
KERNEL_ANSWERED = """async () => {
    const panel = [...window.jupyterapp.shell.widgets('main')].find(widget => widget.context?.sessionContext);
    const session = panel.context.sessionContext;
    await session.ready;
    await session.session.kernel.info;
}"""


class NotebookPage:
    """Made by the fixture ``open_notebook``; cells are counted from 0. Every wait ends on a condition of the page."""

    def __init__(self, page: Page, server: JupyterServer, front_end: FrontEnd, path: str) -> None:
        self.page = page
        self.server = server
        self.front_end = front_end
        self.path = path
        self.console_errors: list[str] = []
        self._workspace = uuid4().hex[:8]
        page.on("console", self._on_console)
        page.on("pageerror", self._on_uncaught)
        page.on("dialog", lambda dialog: dialog.accept())  # "leave page?" on reload

    # -- the document

    def open(self) -> None:
        """Load the page and wait until its kernel is idle."""
        # A workspace of its own, so that JupyterLab does not bring back the tabs of other tests.
        place = f"lab/workspaces/{self._workspace}/tree" if self.front_end == "lab" else "notebooks"
        self.page.goto(f"{self.server.url}/{place}/{self.path}")
        self.wait_ready()

    def reload(self) -> None:
        """Reload the tab, as F5 does, and wait until the notebook is there again (its kernel may be busy)."""
        self.page.reload()
        self.wait_ready(idle=False)

    def wait_ready(self, *, idle: bool = True) -> None:
        """Wait until the notebook is on screen and connected to its kernel."""
        expect(self.panel.locator(".jp-Cell").first).to_be_visible(timeout=60_000)
        self.page.evaluate(KERNEL_ANSWERED)
        if idle:
            self.wait_idle(timeout=60_000)
        else:
            expect(self._indicator).to_have_attribute("data-status", re.compile("idle|busy"), timeout=60_000)

    def save(self) -> dict[str, Any]:
        """Ctrl+S; the notebook as it is on disk afterwards."""
        with self.page.expect_response(
            lambda response: response.request.method == "PUT" and "/api/contents/" in response.url, timeout=TIMEOUT
        ) as saved:
            self.page.keyboard.press("Control+s")
        assert saved.value.ok, f"saving failed: {saved.value.status}"
        return self.on_disk()

    def on_disk(self) -> dict[str, Any]:
        """The notebook file as JSON."""
        content: dict[str, Any] = json.loads((self.server.root / self.path).read_text(encoding="utf-8"))
        return content

    # -- cells

    @property
    def panel(self) -> Locator:
        """The notebook on screen."""
        return self.page.locator(".jp-NotebookPanel:visible").first

    def cell(self, index: int) -> Locator:
        """Cell ``index``."""
        return self.panel.locator(".jp-Notebook .jp-Cell").nth(index)

    def output(self, index: int) -> Locator:
        """Everything under the source of cell ``index``, where widgets are shown too."""
        return self.cell(index).locator(".jp-Cell-outputWrapper").first

    def prompt(self, index: int) -> Locator:
        """The ``[1]:`` of cell ``index``; ``[*]:`` while it is queued or runs."""
        return self.cell(index).locator(".jp-InputPrompt").first

    def edit(self, index: int, source: str) -> None:
        """Replace the source of cell ``index`` by typing."""
        self._focus(index)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.press("Delete")
        self.page.keyboard.insert_text(source)

    def run(self, index: int) -> None:
        """Click into cell ``index`` and press Shift+Enter; return when it is queued, runs or has ended."""
        before = self.prompt(index).inner_text()
        self._focus(index)
        self.page.keyboard.press("Shift+Enter")
        expect(self.prompt(index)).not_to_have_text(before, timeout=TIMEOUT)

    def run_all(self) -> None:
        """Menu Run, "Run All Cells"."""
        self.menu("Run", "Run All Cells")

    def menu(self, menu: str, item: str) -> None:
        """Choose ``item`` (its whole label) of a menu in the menu bar."""
        self.page.locator(".lm-MenuBar-itemLabel, .jp-MenuBar-itemLabel").get_by_text(menu, exact=True).first.click()
        self.page.locator(".lm-Menu-itemLabel:visible").get_by_text(item, exact=True).first.click()

    def answer(self, index: int, button: str) -> None:
        """Press a button of the approval card in cell ``index``, once the card takes clicks."""
        card = self.output(index).locator(".zq-ask")
        expect(card).to_be_visible(timeout=TIMEOUT)
        expect(card).not_to_have_attribute("data-guarded", "")
        card.get_by_role("button", name=button, exact=True).click()

    # -- waiting

    def wait_text(self, index: int, text: str | re.Pattern[str], *, timeout: float = TIMEOUT) -> None:
        """Wait until the output of cell ``index`` contains ``text``; ``timeout`` in milliseconds."""
        expect(self.output(index)).to_contain_text(text, timeout=timeout)

    def wait_done(self, index: int, *, timeout: float = TIMEOUT) -> None:
        """Wait until cell ``index`` has ended; ``timeout`` in milliseconds."""
        expect(self.prompt(index)).to_have_text(re.compile(r"\[\d+\]:"), timeout=timeout)

    def wait_running(self, index: int, *, timeout: float = TIMEOUT) -> None:
        """Wait until cell ``index`` is queued or runs; ``timeout`` in milliseconds."""
        expect(self.prompt(index)).to_have_text("[*]:", timeout=timeout)

    def wait_idle(self, *, timeout: float = TIMEOUT) -> None:
        """Wait until the page shows the kernel as idle; ``timeout`` in milliseconds."""
        expect(self._indicator).to_have_attribute("data-status", "idle", timeout=timeout)

    # -- the kernel

    def interrupt(self) -> None:
        """Click the toolbar's ■."""
        self.panel.locator('[data-command="notebook:interrupt-kernel"]').first.click()

    def kernel_state(self) -> str:
        """``idle``, ``busy`` …, as the server knows it."""
        return str(self._session()["kernel"]["execution_state"])

    def restart_kernel(self) -> None:
        """Menu Kernel, "Restart Kernel…", confirmed; return when the new kernel is ready."""
        with self.page.expect_response(lambda response: "/restart" in response.url, timeout=TIMEOUT) as restarted:
            self.menu("Kernel", "Restart Kernel…")
            self.page.locator(".jp-Dialog button.jp-mod-accept").click()
        assert restarted.value.ok, f"restarting failed: {restarted.value.status}"
        self.wait_idle()

    # -- inside

    @property
    def _indicator(self) -> Locator:
        return self.page.locator(".jp-Notebook-ExecutionIndicator").first

    def _session(self) -> dict[str, Any]:
        session = self.server.session_of(self.path)
        assert session is not None, f"{self.path} has no kernel"
        return session

    def _focus(self, index: int) -> None:
        editor = self.cell(index).locator(".cm-content").first
        editor.click()
        expect(editor).to_be_focused(timeout=TIMEOUT)

    def _on_console(self, message: Any) -> None:
        if message.type == "error" and not IGNORED_CONSOLE.search(message.text):
            self.console_errors.append(message.text)

    def _on_uncaught(self, error: Exception) -> None:
        if self.front_end == "lab" or str(error) not in IGNORED_UNCAUGHT:
            self.console_errors.append(f"uncaught: {error}")


def notebook_with(cells: Sequence[str]) -> str:
    """The text of a notebook file with these code cells; one that starts with ``# %% [markdown]`` becomes markdown."""
    marker = "# %% [markdown]\n"
    document = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    for source in cells:
        if source.startswith(marker):
            document.cells.append(nbformat.v4.new_markdown_cell(source.removeprefix(marker)))
        else:
            document.cells.append(nbformat.v4.new_code_cell(source))
    return str(nbformat.writes(document))
