"""The tests of one file share a tab and a kernel per front end: loading a page takes longer than most of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

from tests.e2e.conftest import REPORT, OpenNotebook
from tests.e2e.notebook_page import FrontEnd, NotebookPage, notebook_with
from tests.e2e.server import JupyterServer

SIZE: ViewportSize = {"width": 1280, "height": 1400}
SCENE = Path(__file__).with_name("view_scene.py").read_text(encoding="utf-8")
# Puts other cells in the place of all there are, as opening another notebook would.
NEW_CELLS = """(sources) => {
    const panel = [...window.jupyterapp.shell.widgets('main')].find(widget => widget.context?.sessionContext);
    const document = panel.content.model.sharedModel;
    document.transact(() => {
        document.deleteCellRange(0, document.cells.length);
        document.insertCells(0, sources.map((source) => ({ cell_type: 'code', source, metadata: {}, outputs: [] })));
    });
}"""


class Tab:
    """A tab and the notebook in it, opened when they are first needed and again after a test that failed."""

    def __init__(self, browser: Browser, server: JupyterServer, front_end: FrontEnd) -> None:
        self._browser = browser
        self._server = server
        self._front_end = front_end
        self._context: BrowserContext | None = None
        self._page: Page | None = None
        self._notebook: NotebookPage | None = None

    @property
    def page(self) -> Page:
        if self._page is None:
            self._context = self._browser.new_context(viewport=SIZE)
            self._page = self._context.new_page()
        return self._page

    def show(self, cells: Sequence[str]) -> NotebookPage:
        """A notebook of these cells, with ``view_scene.py`` beside it; its kernel is idle."""
        if self._notebook is None:
            folder = self._server.root / f"n{uuid4().hex[:8]}"
            folder.mkdir()
            (folder / "view_scene.py").write_text(SCENE, encoding="utf-8")
            (folder / "test.ipynb").write_text(notebook_with(cells), encoding="utf-8")
            self._notebook = NotebookPage(self.page, self._server, self._front_end, f"{folder.name}/test.ipynb")
            self._notebook.open()
        else:
            self.page.set_viewport_size(SIZE)
            self._notebook.wait_idle()
            self.page.evaluate(NEW_CELLS, list(cells))
            self._notebook.console_errors.clear()
        return self._notebook

    def close(self) -> None:
        if self._context is not None:
            self._context.close()
        self._context = self._page = self._notebook = None
        self._server.shut_down_kernels()


@pytest.fixture(scope="module", params=["lab", "notebook"])
def front_end(request: pytest.FixtureRequest) -> FrontEnd:
    """All tests of a file run in JupyterLab, then all in Notebook 7."""
    chosen: FrontEnd = request.param
    return chosen


@pytest.fixture(scope="module")
def tab(browser: Browser, jupyter: JupyterServer, front_end: FrontEnd) -> Iterator[Tab]:
    """The tab that the tests of a file share."""
    tab = Tab(browser, jupyter, front_end)
    yield tab
    tab.close()


@pytest.fixture
def page(tab: Tab, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The shared tab. When the test fails, the report says where its screenshot is; the next gets a new tab."""
    yield tab.page
    report = request.node.stash.get(REPORT, {}).get("call")
    if report is not None and report.failed:
        name = re.sub(r"\W+", "-", request.node.name).strip("-")
        picture = tmp_path_factory.mktemp("screenshot") / f"{name}.png"
        tab.page.screenshot(path=picture)
        report.sections.append(("screenshot", str(picture)))
        tab.close()


@pytest.fixture
def open_notebook(tab: Tab, page: Page) -> OpenNotebook:
    """``open_notebook(cells)``: these cells in the shared tab, with ``view_scene.py`` to import."""
    return tab.show
