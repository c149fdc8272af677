"""The approval card in a real page: what is typed, pressed and clicked, and where the focus goes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import OpenNotebook
from tests.e2e.notebook_page import NotebookPage

pytestmark = pytest.mark.timeout(180)

ASK = "from view_scene import Scene\ns = await Scene().open()\nreply = await s.ask()\ns.close()\nprint('REPLY', reply)"
LATER = (
    "import asyncio\nfrom view_scene import Scene\ns = await Scene().open()\ns.say('Working. ')\n"
    "await asyncio.wait_for(s.stopped.wait(), 30)\ns.stopped.clear()\nreply = await s.ask()\ns.close()\nprint(reply)"
)
# Presses "Allow once" the moment the card appears, and again after 100 ms; then tells what happened.
EARLY_CLICKS = """() => new Promise((resolve) => {
    const watch = new MutationObserver(() => {
        const button = document.querySelector('.zq-ask button');
        if (!button) return;
        watch.disconnect();
        button.click();
        setTimeout(() => { button.click(); resolve(button.disabled); }, 100);
    });
    watch.observe(document.body, { subtree: true, childList: true });
})"""


def card_of(notebook: NotebookPage) -> Locator:
    """The card on screen, past the moment in which it ignores everything."""
    card = notebook.output(0).locator(".zq-ask")
    expect(card).to_be_visible(timeout=30_000)
    expect(card).not_to_have_attribute("data-guarded", "")
    return card


def test_a_reason_typed_letter_by_letter_arrives_whole_and_runs_no_shortcut(
    open_notebook: OpenNotebook, page: Page
) -> None:
    notebook = open_notebook([ASK, "1 + 1"])
    notebook.run(0)
    card_of(notebook)
    notebook.output(0).get_by_placeholder("Reason (optional)").click()
    typed = "a b x dd 00 ii not this table: größer, \"q\" 'r' <b>"
    page.keyboard.type(typed, delay=20)
    page.keyboard.press("Escape")
    expect(notebook.output(0).locator(".zq-ask")).to_be_visible()
    page.keyboard.press("Enter")
    notebook.wait_done(0)
    notebook.wait_text(0, "outcome=<ApprovalOutcome.DENY")
    notebook.wait_text(0, repr(typed))
    expect(notebook.panel.locator(".jp-Cell")).to_have_count(2)
    assert notebook.console_errors == []


def test_buttons_work_from_the_keyboard_in_reading_order_and_run_no_shortcut(
    open_notebook: OpenNotebook, page: Page
) -> None:
    notebook = open_notebook([ASK, "1 + 1"])
    notebook.run(0)
    card_of(notebook)
    output = notebook.output(0)
    output.locator(".zq-ask pre").focus()
    order = []
    for _ in range(4):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.textContent || document.activeElement.placeholder"))
    assert order == ["Allow once", "Always this tool", "Deny", "Reason (optional)"]
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")
    for key in ("a", "b", "d", "d", "x", "Escape"):
        page.keyboard.press(key)
    expect(notebook.panel.locator(".jp-Cell")).to_have_count(2)
    page.keyboard.press("Enter")
    notebook.wait_text(0, "ALWAYS_TOOL")
    notebook.wait_done(0)


def test_a_card_ignores_clicks_in_its_first_300_ms(open_notebook: OpenNotebook, page: Page) -> None:
    notebook = open_notebook([LATER])
    notebook.run(0)
    notebook.wait_text(0, "Working.")
    page.evaluate("() => { document.querySelector('.zq-stop').click(); }")
    answered = page.evaluate(EARLY_CLICKS)
    assert answered is False, "a click in the first moment counted"
    card_of(notebook).get_by_role("button", name="Allow once").click()
    notebook.wait_text(0, "ApprovalOutcome.ONCE")


def test_the_card_takes_the_focus_only_from_its_own_cell(open_notebook: OpenNotebook, page: Page) -> None:
    notebook = open_notebook([LATER, ""])
    notebook.run(0)
    notebook.wait_text(0, "Working.")
    notebook.cell(1).locator(".cm-content").click()
    page.evaluate("() => { document.querySelector('.zq-stop').click(); }")
    page.keyboard.type("mine = 1", delay=40)
    card_of(notebook)
    page.keyboard.type(" + 1")
    expect(notebook.cell(1).locator(".cm-content")).to_have_text("mine = 1 + 1")
    notebook.output(0).get_by_role("button", name="Deny").click()
    notebook.wait_done(0)

    notebook.run(0)
    stop = notebook.output(0).locator(".zq-stop")
    expect(stop).to_be_visible()
    stop.focus()
    page.keyboard.press("Enter")
    expect(notebook.output(0).locator(".zq-ask")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    card_of(notebook)
    page.keyboard.press("Enter")
    expect(notebook.output(0).locator(".zq-ask")).to_be_visible()
    notebook.output(0).get_by_role("button", name="Allow once").click()
    notebook.wait_text(0, "ApprovalOutcome.ONCE")


def test_stop_works_while_an_approval_waits(open_notebook: OpenNotebook, page: Page) -> None:
    notebook = open_notebook([ASK])
    notebook.run(0)
    card_of(notebook)
    notebook.output(0).get_by_role("button", name="Stop").click()
    notebook.wait_text(0, "REPLY None")
    notebook.wait_text(0, "interrupted")


def test_everything_of_a_long_command_is_in_the_card_and_the_box_says_that_it_scrolls(
    open_notebook: OpenNotebook, page: Page
) -> None:
    lines = "\\n".join(f"echo {number}" for number in range(120)) + "\\nrm -rf build\\u202e"
    ask = f"reply = await s.ask('run_shell', {{'command': \"{lines}\"}}, command=True)"
    notebook = open_notebook([f"from view_scene import Scene\ns = await Scene().open()\n{ask}\ns.close()\nreply"])
    notebook.run(0)
    card = card_of(notebook)
    expect(card.locator("pre")).to_contain_text("echo 0")
    expect(card.locator("pre")).to_contain_text("rm -rf build⟨U+202E⟩")
    expect(card).to_contain_text("121 lines; scroll in the box to see them all")
    card.get_by_role("button", name="Always this command").click()
    notebook.wait_text(0, "ALWAYS_COMMAND")
