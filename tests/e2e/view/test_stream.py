"""The streamed cell in a real page: reloads, second views, lost messages, and what stays."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import OpenNotebook
from tests.e2e.notebook_page import NotebookPage

pytestmark = pytest.mark.timeout(180)

START = "import asyncio\nfrom view_scene import ANSWER, Scene\ns = await Scene().open()\n"
WAIT = "await asyncio.wait_for(s.stopped.wait(), 60)\n"
END = "s.said(s.transcript.blocks[-1].text)\ns.close()\n"


def prose(notebook: NotebookPage, index: int = 0) -> str:
    return " ".join(notebook.output(index).locator(".zq-prose").first.inner_text().split())


def test_streamed_text_is_rendered_and_the_same_afterwards(open_notebook: OpenNotebook) -> None:
    source = (
        START + "for at in range(0, len(ANSWER), 3):\n    s.say(ANSWER[at:at + 3])\n    await asyncio.sleep(0.004)\n"
    )
    notebook = open_notebook([source + "s.say('The end of it.')\n" + WAIT + END])
    notebook.run(0)
    notebook.wait_text(0, "The end of it.")
    output = notebook.output(0)
    expect(output.locator(".zq-prose strong")).to_have_text("North fell 16.9 %")
    expect(output.locator(".zq-prose ol li")).to_have_text(["first", "second"])
    expect(output.locator(".zq-prose pre .d")).to_have_text("share")
    expect(output.locator(".zq-prose td")).to_have_text(["North", "214"])
    live = prose(notebook)
    output.get_by_role("button", name="Stop").click()
    notebook.wait_done(0)
    expect(output.locator(".zq-done")).to_be_visible()
    assert prose(notebook) == live
    assert notebook.console_errors == []


def test_what_stays_is_in_the_saved_notebook_without_a_widget(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook([START + "s.say('Kept.')\n" + END])
    notebook.run(0)
    notebook.wait_done(0)
    (output,) = notebook.save()["cells"][0]["outputs"]
    assert sorted(output["data"]) == ["text/html", "text/markdown", "text/plain"]
    notebook.reload()
    expect(notebook.output(0).locator(".zq-done")).to_contain_text("Kept.")


def test_a_reload_in_mid_run_brings_text_and_card_back_and_the_end_stays(
    open_notebook: OpenNotebook, page: Page
) -> None:
    source = START + "s.say('Before the reload, ')\nreply = await s.ask()\ns.say('after it.')\n" + END
    notebook = open_notebook([source])
    notebook.run(0)
    expect(notebook.output(0).locator(".zq-ask")).to_be_visible(timeout=30_000)
    notebook.save()
    page.reload()  # not notebook.reload(): while the cell waits, nothing but this widget answers the new page
    expect(notebook.output(0).locator(".zq-ask")).to_be_visible(timeout=90_000)
    notebook.wait_text(0, "Before the reload,")
    notebook.answer(0, "Allow once")
    expect(notebook.output(0).locator(".zq-done")).to_contain_text("after it.", timeout=30_000)
    data = notebook.save()["cells"][0]["outputs"][0]["data"]
    assert "application/vnd.jupyter.widget-view+json" not in data
    assert "after it." in "".join(data["text/markdown"])


def test_a_lost_message_is_noticed_and_made_good(open_notebook: OpenNotebook) -> None:
    lose = "s.view._widget, kept = None, s.view._widget\ns.say('two ')\ns.view._stream.flush()\ns.view._widget = kept\n"
    source = START + "s.say('one ')\ns.view._stream.flush()\n" + lose + "s.say('three')\n" + WAIT + END
    notebook = open_notebook([source])
    notebook.run(0)
    notebook.wait_text(0, "one two three")
    notebook.output(0).get_by_role("button", name="Stop").click()
    notebook.wait_done(0)


def test_a_second_view_shows_the_same_and_closes_with_the_first(open_notebook: OpenNotebook) -> None:
    second = "from IPython.display import display\ndisplay(s.view._widget.view_bundle(''), raw=True)\n"
    notebook = open_notebook([START + "s.say('Both.')\n" + second + "reply = await s.ask()\n" + END])
    notebook.run(0)
    cards = notebook.output(0).locator(".zq-ask")
    expect(cards).to_have_count(2, timeout=30_000)
    expect(notebook.output(0).locator(".zq-prose", has_text="Both.")).to_have_count(2)
    expect(cards.nth(1)).not_to_have_attribute("data-guarded", "")
    cards.nth(1).get_by_role("button", name="Allow once").click()
    expect(cards).to_have_count(0)
    notebook.wait_done(0)


def test_a_restarted_kernel_ends_the_clock_and_disables_the_card(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook([START + "reply = await s.ask()\n"])
    notebook.run(0)
    expect(notebook.output(0).locator(".zq-ask")).to_be_visible(timeout=30_000)
    notebook.restart_kernel()
    notebook.wait_text(0, "the kernel is gone")
    expect(notebook.output(0).get_by_role("button", name="Deny")).to_be_disabled()


LONG = """
for at in range(150):
    s.say(f"Line {at} of a long answer that fills the page.\\n\\n")
    await asyncio.sleep(0.03)
"""
PLACE = """() => {
    const end = document.querySelector('.zq-live').getBoundingClientRect().bottom;
    let box = document.querySelector('.zq-live');
    while (box && !(box.scrollHeight > box.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(box).overflowY)))
        box = box.parentElement;
    return { below: Math.round(end - box.getBoundingClientRect().bottom), top: Math.round(box.scrollTop) };
}"""


def test_the_page_follows_the_answer_until_the_user_scrolls(open_notebook: OpenNotebook, page: Page) -> None:
    notebook = open_notebook([START + "await asyncio.sleep(2)" + LONG + "s.say('Over.')\n" + WAIT + END])
    page.set_viewport_size({"width": 1000, "height": 600})
    notebook.run(0)
    notebook.wait_text(0, "Line 60 ")
    followed = page.evaluate(PLACE)
    assert followed["top"] > 0
    assert followed["below"] <= 60, "the end of the answer is out of sight"
    page.mouse.move(500, 300)
    page.mouse.wheel(0, -400)
    notebook.wait_text(0, "Line 100 ")  # by then the wheel's own motion is over
    mine = page.evaluate(PLACE)["top"]
    notebook.wait_text(0, "Over.")
    assert 0 < mine < followed["top"] - 300
    assert page.evaluate(PLACE)["top"] == mine, "the page scrolled away from where the user was reading"
    notebook.output(0).get_by_role("button", name="Stop").click()
    notebook.wait_done(0)
    assert notebook.console_errors == []


# 1000 deltas of 20 characters at 400 per second, handed over every 25 ms; nothing follows the last of them.
FAST = """
import time
words = ("The drop is in **one** product line, see `sales` and the notes. " * 400)[:20_000]
pieces = [words[at:at + 20] for at in range(0, 20_000, 20)]
pieces[-1] = "and here it ends."
begin = time.monotonic()
for at in range(0, 1000, 10):
    await asyncio.sleep(max(0, begin + at / 400 - time.monotonic()))
    s.say_all(pieces[at:at + 10])
"""


def test_1000_deltas_cost_at_most_six_times_their_bytes_and_the_last_is_seen_without_a_further_event(
    open_notebook: OpenNotebook, page: Page
) -> None:
    received = list[int]()
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(len(data))))
    notebook = open_notebook([START + FAST + WAIT + END])
    notebook.save()
    notebook.reload()  # for a connection that is watched from its beginning, and a page that lacks the drawing code
    received.clear()
    notebook.run(0)
    notebook.wait_text(0, "and here it ends.")
    size = sum(received)
    assert 20_000 < size <= 6 * 20_000, f"{size / 20_000:.2f} times the text"
    notebook.output(0).get_by_role("button", name="Stop").click()
    notebook.wait_done(0)
