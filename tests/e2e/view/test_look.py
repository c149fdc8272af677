"""Legible in light and dark, usable at 400 pixels: measured on what the browser really draws."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenNotebook
from tests.e2e.notebook_page import NotebookPage

pytestmark = pytest.mark.timeout(180)

# A cell with everything in it: text, table, code, a finished, a failed and a denied call, and a card that asks.
SOURCE = """\
from view_scene import ANSWER, Scene
s = await Scene().open()
s.say(ANSWER); s.said(ANSWER)
s.propose('read_file', {'path': 'data/a/rather/long/path/to/a/file.csv', 'limit': 5}, 'c7')
s.finish_tool('c7', 'read_file')
s.propose('grep', {'pattern': 'x'}, 'c8'); s.finish_tool('c8', 'grep', 'error', 'No such file.')
s.propose('run_code', {'code': 'x = 1'}, 'c9'); s.finish_tool('c9', 'run_code', 'denied', '')
reply = await s.ask('run_shell', {'command': 'git log --oneline  # ' + 'long ' * 40}, command=True)
s.close()
"""
# Contrast of every piece of text on screen, by WCAG 2; colours are read back from a canvas, whatever their form.
CONTRASTS = """(root) => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    canvas.canvas.width = canvas.canvas.height = 1;
    const over = (colours) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const luminance = (rgb) => {
        const [r, g, b] = rgb.map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const results = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const text = walker.currentNode.data.trim();
        const element = walker.currentNode.parentElement;
        if (!text || element.closest('.zq-sr, .zq-sep, style') || !element.checkVisibility()) continue;
        const layers = [];
        for (let at = element; at; at = at.parentElement) layers.unshift(getComputedStyle(at).backgroundColor);
        const back = luminance(over(['white', ...layers]));
        const front = luminance(over(['white', ...layers, getComputedStyle(element).color]));
        const ratio = (Math.max(back, front) + 0.05) / (Math.min(back, front) + 0.05);
        results.push([Math.round(ratio * 100) / 100, text.slice(0, 40), element.className || element.tagName]);
    }
    return results;
}"""

# What sticks out to the right, other than inside a box that scrolls or clips.
TOO_WIDE = """(node) => {
    const edge = node.getBoundingClientRect().right + 1;
    const clipped = 'pre, .zq-wide, .zq-sr, .zq-sep, .zq-arg, .zq-sum';
    return [...node.querySelectorAll('*')]
        .filter((e) => e.checkVisibility() && !e.closest(clipped) && e.getBoundingClientRect().right > edge)
        .map((e) => e.className || e.tagName);
}"""

# Pixels between the bar at the cell's side and our text.
BESIDE_THE_BAR = """(node) => {
    const bar = node.closest('.jp-Cell-outputWrapper').querySelector('.jp-OutputCollapser');
    return node.querySelector('.zq-head').getBoundingClientRect().left - bar.getBoundingClientRect().right;
}"""


def choose_theme(page: Page, name: str) -> None:
    page.evaluate("name => window.jupyterapp.commands.execute('apputils:change-theme', { theme: name })", name)
    light = "true" if name.endswith("Light") else "false"
    expect(page.locator("body")).to_have_attribute("data-jp-theme-light", light)


def too_faint(notebook: NotebookPage, selector: str) -> list[Any]:
    found: list[Any] = notebook.output(0).locator(selector).evaluate(CONTRASTS)
    assert len(found) > 20
    return [entry for entry in found if entry[0] < 4.5]


def show(notebook: NotebookPage) -> None:
    notebook.run(0)
    expect(notebook.output(0).locator(".zq-ask")).to_be_visible(timeout=30_000)


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_all_text_has_a_contrast_of_4_5(open_notebook: OpenNotebook, page: Page, theme: str) -> None:
    notebook = open_notebook([SOURCE])
    choose_theme(page, theme)
    show(notebook)
    notebook.output(0).evaluate("node => node.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert too_faint(notebook, ".zq-live") == []
    notebook.answer(0, "Deny")
    notebook.wait_done(0)
    assert too_faint(notebook, ".zq-done") == []
    # Arguments and result of a call are told apart by a rule.
    expect(notebook.output(0).locator(".zq-body > pre + pre").first).to_have_css("border-top-width", "1px")
    choose_theme(page, "JupyterLab Light")


def test_nothing_is_wider_than_400_pixels(open_notebook: OpenNotebook, page: Page) -> None:
    notebook = open_notebook([SOURCE])
    show(notebook)
    if notebook.front_end == "lab":
        page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    page.set_viewport_size({"width": 400, "height": 900})
    live = notebook.output(0).locator(".zq-live")
    expect(live.get_by_role("button", name="Deny")).to_be_visible()
    assert live.evaluate(TOO_WIDE) == []
    assert live.evaluate(BESIDE_THE_BAR) > 3
    assert live.evaluate("node => node.scrollWidth <= node.clientWidth + 1")
    notebook.answer(0, "Deny")
    notebook.wait_done(0)
    done = notebook.output(0).locator(".zq-done")
    assert done.evaluate(TOO_WIDE) == []
    assert done.evaluate(BESIDE_THE_BAR) > 3
    if notebook.front_end == "lab":
        page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")


def test_a_screen_reader_is_told_what_happens(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook([SOURCE])
    show(notebook)
    live = notebook.output(0).locator(".zq-live")
    expect(live.get_by_role("status")).to_have_text("Waiting for you: Allow run_shell to run this command?")
    expect(live.get_by_role("group", name="Allow run_shell to run this command?")).to_be_visible()
    for name in ("done", "failed", "denied"):
        expect(live.get_by_role("img", name=name, exact=True)).to_have_count(1)
    notebook.answer(0, "Deny")
    notebook.wait_done(0)
