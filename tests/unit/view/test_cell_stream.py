"""The messages to a running cell's front end: complete, in order, and few bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.view.play import (
    Clock,
    Page,
    delta,
    finished,
    message,
    play,
    proposed,
    reasoning,
    request,
    same_html,
    small_turn,
    started,
)
from zq_notebook.engine import events as ev
from zq_notebook.engine.approval import ApprovalReply, PermissionRequest
from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.transcript_blocks import Footer
from zq_notebook.notebook.view.approval import approval_card
from zq_notebook.notebook.view.cell_stream import CellStream
from zq_notebook.text.markdown import render_markdown

SENTENCE = "North fell **16.9 %** in the third quarter, mostly in one line; see `sales` and the *regional* notes. "
CODE = "```python\ndef share(frame, by='region'):\n    counts = frame[by].value_counts()\n    return counts\n```\n\n"
TABLE = "| a | b |\n|---|---|\n" + "".join(f"| {n} | value {n} |\n" for n in range(12)) + "\n"
TEXTS = {
    "one paragraph": "The quick brown fox jumps over the lazy dog near the river bank. ",
    "paragraphs": "The quick brown fox jumps over the lazy dog. " * 8 + "\n\n",
    "markup": SENTENCE * 4 + "\n\n- first `code`\n- second **bold**\n\n",
    "code": SENTENCE + "\n\n" + CODE,
    "tables": SENTENCE + "\n\n" + TABLE,
}
# What a comm message weighs around its content: header, parent header, comm id (measured in JupyterLab 4.6).
ENVELOPE = 650


@pytest.mark.parametrize("kind", TEXTS)
def test_2000_deltas_cost_at_most_six_times_the_text(kind: str) -> None:
    text = (TEXTS[kind] * 700)[:40_000]
    sent = list[dict[str, Any]]()
    play(text, sent.append, deltas=2000)
    size = sum(len(json.dumps(message, ensure_ascii=False).encode()) + ENVELOPE for message in sent)
    assert size <= 6 * len(text.encode()), f"{size / len(text.encode()):.1f} times the text in {len(sent)} messages"


@pytest.mark.parametrize("kind", TEXTS)
def test_what_the_page_has_in_the_end_is_what_the_text_renders_to(kind: str) -> None:
    text = (TEXTS[kind] * 100)[:6000]
    page = Page()
    play(text, page.receive, deltas=300)
    (html,) = page.html.values()
    assert same_html(html, render_markdown(text))
    assert "".join(page.tail.values()).strip() == ""


@given(
    st.lists(
        st.sampled_from(
            ["a ", "**b**", "`c`", "\n", "\n\n", "```\n", "```py\nx = 1\n", "- ", "1. ", "# ", "😀", "| ", "> "]
        )
    )
)
def test_no_text_is_lost_or_doubled_on_its_way(pieces: list[str]) -> None:
    text = "".join(pieces)
    page = Page()
    shown = [""]

    def receive(message: dict[str, Any]) -> None:
        page.receive(message)
        shown.append("".join(page.html.values()) + "".join(page.tail.values()))

    play(text, receive, deltas=max(1, len(text) // 2), rate=20)
    if text.strip():
        words = text.count("a ") + text.count("😀")
        assert shown[-1].count("a ") + shown[-1].count("a\n") + shown[-1].count("a<") + shown[-1].count("😀") >= words


def test_a_word_is_on_its_way_at_most_90_ms_after_it_came() -> None:
    clock = Clock()
    transcript = Transcript("code", "m", "auto", clock)
    stream = CellStream(transcript, lambda message: None, clock)
    for _ in range(40):
        stream.take(transcript.apply(delta("x" * 100)))
        assert stream.due_in() <= 0.09
        clock.now += 0.05
        if stream.due_in() == 0:
            stream.flush()


def test_a_pause_sends_what_is_there() -> None:
    clock = Clock()
    transcript = Transcript("code", "m", "auto", clock)
    stream = CellStream(transcript, lambda message: None, clock)
    stream.take(transcript.apply(delta("x" * 5000)))
    stream.flush()
    clock.now += 0.01
    stream.take(transcript.apply(delta("x" * 5000)))
    assert stream.due_in() <= 0.06


def test_messages_are_numbered_without_a_gap() -> None:
    sent = list[dict[str, Any]]()
    transcript = Transcript("analyst", "m", "interactive")
    stream = CellStream(transcript, sent.append)
    for event in small_turn():
        stream.take(transcript.apply(event))
        stream.flush()
    assert [message["n"] for message in sent] == list(range(1, len(sent) + 1))


def test_a_snapshot_at_any_moment_shows_what_the_stream_showed() -> None:
    events = list(small_turn())
    for cut in range(len(events) + 1):
        live, late = Page(), Page()
        transcript = Transcript("analyst", "m", "interactive", Clock())
        stream = CellStream(transcript, live.receive, Clock())
        for event in events[:cut]:
            stream.take(transcript.apply(event))
            stream.flush()
        stream._send = late.receive
        stream.snapshot("v")
        stream._send = lambda message, live=live, late=late: (live.receive(message), late.receive(message))
        for event in events[cut:]:
            stream.take(transcript.apply(event))
            stream.flush()
        assert late.order == live.order
        assert late.tools == live.tools
        for item in live.html:
            both = live.html[item] + live.tail[item], late.html[item] + late.tail[item]
            assert same_html(*both)


def test_a_snapshot_is_split_into_messages_of_a_size_that_passes() -> None:
    sent = list[dict[str, Any]]()
    transcript = Transcript("analyst", "m", "interactive")
    stream = CellStream(transcript, sent.append)
    for number in range(8):
        stream.take(transcript.apply(request(f"r{number}")))
        stream.take(transcript.apply(message("word " * 100_000, req_id=f"r{number}")))
    stream.drop()
    stream.snapshot("v")
    assert len(sent) > 3
    assert all(len(json.dumps(message)) < 2_000_000 for message in sent)
    assert [message["last"] for message in sent] == [False] * (len(sent) - 1) + [True]


def test_a_retry_takes_the_broken_reply_away() -> None:
    page = Page()
    transcript = Transcript("analyst", "m", "interactive")
    stream = CellStream(transcript, page.receive)
    for event in (request(), reasoning("hm"), delta("half an ans")):
        stream.take(transcript.apply(event))
    stream.flush()
    assert len(page.order) == 2
    stream.take(transcript.apply(ev.LlmRetry(attempt=1, max=2, reason="lost", wait_ms=1, iteration=1, req_id="r1")))
    stream.flush()
    assert page.order == []
    assert [op[0] for op in page.other] == ["note"]


def test_a_tool_sends_only_what_changed() -> None:
    sent = list[dict[str, Any]]()
    transcript = Transcript("analyst", "m", "interactive")
    stream = CellStream(transcript, sent.append)
    for event in (proposed(), started(), finished()):
        stream.take(transcript.apply(event))
        stream.flush()
    first, second, third = (op for message in sent for op in message["o"] if op[0] == "tool")
    assert {"name", "arg", "status"} <= first[2].keys()
    assert "name" not in second[2]
    assert third[2]["status"] == "ok"


def test_a_card_comes_with_its_call_and_goes_with_the_answer() -> None:
    page = Page()
    transcript = Transcript("analyst", "m", "interactive")
    stream = CellStream(transcript, page.receive)
    asked = PermissionRequest(
        tool_name="run_shell", arguments={"command": "ls"}, metadata=None, reason="why", tool_call_id="c1"
    )
    stream.take(transcript.approval_asked(asked))
    stream.ask(approval_card(asked, workspace=Path("/w"), can_always_command=True))
    stream.flush()
    (card,) = [op[2] for op in page.other if op[0] == "ask"]
    assert [outcome for outcome, _ in card["buttons"]] == ["once", "always_tool", "always_command"]
    heads = [op[1]["state"] for op in page.other if op[0] == "head"]
    assert heads == ["waiting for you"]
    stream.answered("c1")
    stream.take(transcript.approval_answered("c1", ApprovalReply("deny", reason="no")))
    stream.flush()
    assert [op[0] for op in page.other if op[0] == "answered"] == ["answered"]
    assert next(iter(page.tools.values()))["words"] == "denied: no"


def test_the_end_says_how_it_ended() -> None:
    page = Page()
    transcript = Transcript("analyst", "m", "interactive")
    stream = CellStream(transcript, page.receive)
    stream.take(transcript.finish(Footer(status="interrupted")))
    stream.finish(Footer(status="interrupted"))
    stream.flush()
    assert ["say", "The agent's turn is over: interrupted."] in page.other
    assert [op[1]["state"] for op in page.other if op[0] == "head"] == ["done"]
