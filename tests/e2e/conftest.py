"""Fixtures that drive a real JupyterLab and a real Notebook 7 in Debian's Chromium.

The synchronous Playwright keeps an event loop running in this thread while it is started, so tests of this folder are
plain functions; a browser lives as long as one test module, and async tests elsewhere are not disturbed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.e2e.notebook_page import FrontEnd, NotebookPage, notebook_with
from tests.e2e.server import JupyterServer, find_chromium

BROWSER_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OpenNotebook = Callable[..., NotebookPage]

REPORT = pytest.StashKey[dict[str, pytest.TestReport]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep each phase's report where the ``page`` fixture sees whether its test failed."""
    report = yield
    item.stash.setdefault(REPORT, {})[report.when] = report
    return report


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the browser. Without one the tests are skipped; with ``CI=true`` they fail."""
    path = find_chromium()
    if path is not None:
        return path
    message = "no Chromium on this machine (on Debian: apt-get install chromium)"
    if os.environ.get("CI") == "true":
        pytest.fail(f"Browser tests cannot run: {message}", pytrace=False)
    pytest.skip(message)


@pytest.fixture(scope="session")
def jupyter(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JupyterServer]:
    """One server for all tests of the session; files that a test puts under ``jupyter.root`` are its own to name."""
    server = JupyterServer(tmp_path_factory.mktemp("jupyter"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A headless Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER_OPTIONS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab in a fresh profile. When the test fails, the report says where its screenshot is."""
    context = browser.new_context(viewport={"width": 1280, "height": 1400})
    page = context.new_page()
    yield page
    report = request.node.stash.get(REPORT, {}).get("call")
    if report is not None and report.failed:
        name = re.sub(r"\W+", "-", request.node.name).strip("-")
        picture = tmp_path_factory.mktemp("screenshot") / f"{name}.png"
        page.screenshot(path=picture)
        report.sections.append(("screenshot", str(picture)))
    context.close()


@pytest.fixture(params=["lab", "notebook"])
def front_end(request: pytest.FixtureRequest) -> FrontEnd:
    """Each test that uses this runs in JupyterLab and in Notebook 7."""
    chosen: FrontEnd = request.param
    return chosen


@pytest.fixture
def open_notebook(page: Page, jupyter: JupyterServer, front_end: FrontEnd) -> Iterator[OpenNotebook]:
    """``open_notebook(cells, files={name: content})``: a new notebook in a folder of its own, its kernel idle.

    ``files`` are written beside the notebook. Kernels are ended after the test.
    """

    def open_one(cells: Sequence[str], files: dict[str, str] | None = None) -> NotebookPage:
        folder = Path(f"n{uuid4().hex[:8]}")
        place = jupyter.root / folder
        place.mkdir()
        for name, content in (files or {}).items():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text(content, encoding="utf-8")
        (place / "test.ipynb").write_text(notebook_with(cells), encoding="utf-8")
        notebook = NotebookPage(page, jupyter, front_end, str(folder / "test.ipynb"))
        notebook.open()
        return notebook

    yield open_one
    jupyter.shut_down_kernels()
