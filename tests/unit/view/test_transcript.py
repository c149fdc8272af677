"""The record of a turn: what is in it, in which order, and what stays out."""

from __future__ import annotations

import re

import pytest

from tests.unit.view.play import (
    CODE,
    Clock,
    delta,
    finished,
    message,
    proposed,
    reasoning,
    request,
    small_turn,
    started,
    turn_end,
)
from zq_notebook.engine import events as ev
from zq_notebook.engine.approval import ApprovalReply
from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.transcript_blocks import Footer, NoticeBlock, ReasoningBlock, TextBlock, ToolBlock
from zq_notebook.notebook.transcript_bundle import bundle
from zq_notebook.toolio import ImageData


def record(*events: ev.Event, clock: Clock | None = None) -> Transcript:
    transcript = Transcript("analyst", "gpt-5.2", "interactive", clock or Clock())
    for event in events:
        transcript.apply(event)
    return transcript


def texts(transcript: Transcript) -> list[str]:
    return [block.text for block in transcript.blocks if isinstance(block, TextBlock)]


def only_tool(transcript: Transcript) -> ToolBlock:
    (tool,) = (block for block in transcript.blocks if isinstance(block, ToolBlock))
    return tool


def test_all_three_forms_say_the_same_in_the_same_order() -> None:
    transcript = record(*small_turn())
    transcript.approval_answered("c1", ApprovalReply("once", answered_by="card"))
    transcript.finish(
        Footer(
            files=["out.csv"], variables_new=["total"], variables_changed=["sales"], tokens=3120, cost=0.004, elapsed=14
        )
    )
    forms = bundle(transcript)
    assert sorted(forms) == ["text/html", "text/markdown", "text/plain"]
    said = [
        "analyst", "gpt-5.2", "asks before acting", "Thought for", "The user wants a sum.", "compute", "run_code",
        "total = 41 + 1", "allowed once", "int", "0.11 s", "42", "It is", "variables:", "total", "new", "sales",
        "changed", "out.csv", "3.1k tokens", "0.004", "14 s",
    ]  # fmt: skip
    for kind, text in forms.items():
        body = re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
        at = 0
        for words in said:
            found = body.find(words, at)
            assert found >= 0, f"{words!r} is missing after character {at} of {kind}:\n{body}"
            at = found


def test_results_are_folded_and_pictures_are_in_the_page_itself() -> None:
    forms = bundle(record(*small_turn()))
    for kind in ("text/html", "text/markdown"):
        assert "<details" in forms[kind]
        assert "data:image/png;base64,iVBORw0KGgo=" in forms[kind]
    assert "widget" not in forms["text/html"]


def test_a_reply_that_broke_off_leaves_nothing_but_a_note() -> None:
    retry = ev.LlmRetry(attempt=1, max=2, reason="connection lost.", wait_ms=800, iteration=1, req_id="r1")
    transcript = record(
        request(), reasoning("hm"), delta("half an"), retry, request(), delta("whole"), message("whole")
    )
    assert texts(transcript) == ["whole"]
    assert "The model could not be reached (connection lost). Trying again, 1 of 2." in bundle(transcript)["text/plain"]


def test_an_earlier_reply_survives_a_retry_of_the_next() -> None:
    retry = ev.LlmRetry(attempt=1, max=2, reason="x", wait_ms=1, iteration=2, req_id="r2")
    transcript = record(request(), delta("first"), message("first"), request("r2"), delta("sec", "r2"), retry)
    assert texts(transcript) == ["first"]


def test_a_reply_that_was_not_streamed_is_shown() -> None:
    assert texts(record(request(), message("all at once"))) == ["all at once"]


def test_the_complete_reply_wins_over_what_was_streamed() -> None:
    assert texts(record(request(), delta("teh"), message("the"))) == ["the"]


def test_reasoning_is_timed_until_the_answer_begins() -> None:
    clock = Clock()
    transcript = record(request(), reasoning("hm"), clock=clock)
    clock.now = 2.2
    transcript.apply(delta("so"))
    (block,) = (block for block in transcript.blocks if isinstance(block, ReasoningBlock))
    assert block.seconds == pytest.approx(2.2)
    assert "Thought for 2 s" in bundle(transcript)["text/html"]


def test_a_call_goes_through_its_states() -> None:
    transcript = record(request(), message("", ["run_code"]), proposed())
    tool = only_tool(transcript)
    states = [tool.status]
    for event in (
        ev.PermissionRequired(
            task_id="t", req_id="c1", name="run_code", arguments={"code": CODE}, reason="x", category="exec"
        ),
        started(),
        finished(),
    ):
        transcript.apply(event)
        states.append(tool.status)
    assert states == ["proposed", "waiting", "running", "ok"]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (ApprovalReply("once"), "allowed once"),
        (ApprovalReply("always_tool"), "tool always allowed"),
        (ApprovalReply("always_command"), "command always allowed"),
        (ApprovalReply("deny"), "denied"),
        (ApprovalReply("deny", reason="not this table"), "denied: not this table"),
    ],
)
def test_the_answer_stands_on_the_line_of_its_call(reply: ApprovalReply, words: str) -> None:
    transcript = record(request(), message("", ["run_code"]), proposed())
    transcript.approval_answered("c1", reply)
    transcript.apply(finished(status="denied" if reply.outcome == "deny" else "ok"))
    line = next(line for line in bundle(transcript)["text/plain"].splitlines() if "run_code" in line)
    assert f" · {words}" in line


@pytest.mark.parametrize(
    ("outcome", "second", "words"),
    [
        ("always_tool", "rm b", ["tool always allowed", "allowed earlier"]),
        ("always_command", "rm a", ["command always allowed", "allowed earlier"]),
        ("always_command", "rm b", ["command always allowed", ""]),
        ("once", "rm a", ["allowed once", ""]),
    ],
)
def test_a_call_that_an_earlier_answer_covers_says_so(outcome: str, second: str, words: list[str]) -> None:
    transcript = record(request(), message("", ["run_shell"]))
    for call, command in (("c1", "rm a"), ("c2", second)):
        transcript.apply(proposed(call, "run_shell", command=command))
        if call == "c1":
            transcript.approval_answered(call, ApprovalReply(outcome))
        transcript.apply(started(call, "run_shell"))
        transcript.apply(finished(call, "run_shell"))
    tools = [block for block in transcript.blocks if isinstance(block, ToolBlock)]
    assert [tool.note for tool in tools] == words


@pytest.mark.parametrize(
    ("method", "after", "words"),
    [
        ("trimmed", 40, "Old tool results were shortened to make room."),
        ("trimmed", 12, "The conversation was shortened to make room: 40 messages became 12."),
        ("summarized", 40, "The conversation was shortened to make room: 40 messages became 40."),
    ],
)
def test_what_making_room_did_is_said(method: str, after: int, words: str) -> None:
    compacted = ev.Compacted(req_id="r", method=method, messages_before=40, messages_after=after)
    (notice,) = record(request(), compacted).blocks
    assert isinstance(notice, NoticeBlock)
    assert notice.text == words


def test_a_denial_by_the_rules_says_why() -> None:
    denied = ev.ToolFinished(
        task_id="t", req_id="c1", name="write_file", status="denied", reason="outside the workspace"
    )
    transcript = record(request(), proposed("c1", "write_file", path="/etc/x", content="y"), denied)
    assert "⊘ write_file /etc/x · denied: outside the workspace" in bundle(transcript)["text/plain"]


def test_a_failed_call_is_open_and_says_what_the_tool_said() -> None:
    failed = finished(status="error", text='{"error": "No file at a.csv.", "error_type": "ToolError"}')
    forms = bundle(record(request(), proposed("c1", "read_file", path="a.csv"), failed))
    assert '<details class="zq-tool zq-error" open>' in forms["text/html"]
    assert "No file at a.csv." in forms["text/plain"]
    assert "error_type" not in forms["text/plain"]


def test_a_call_without_a_result_is_interrupted_at_the_end() -> None:
    transcript = record(
        request(), proposed(), started(), ev.Interrupted(iterations=1, req_id="r1", task_id="t"), turn_end()
    )
    assert only_tool(transcript).status == "interrupted"
    assert "Interrupted." in bundle(transcript)["text/markdown"]


def test_the_markup_of_a_tool_is_shown_without_anything_that_runs() -> None:
    table = (
        "<style>x</style><table onclick='x()'><tr><td>1<script>alert(1)</script></td></tr></table><img src=x onerror=y>"
    )
    shown = finished(display={"text/html": table, "text/plain": "1"})
    html = bundle(record(request(), proposed(), shown))["text/html"]
    assert "<table><tr><td>1</td></tr></table>" in html
    assert "alert" not in html
    assert "onclick" not in html
    assert "onerror" not in html


def test_names_arguments_and_results_are_escaped_everywhere() -> None:
    evil = "<img src=x onerror=alert(1)>"
    events = (
        request(),
        proposed("c1", evil, path=evil, content=evil * 9),
        finished("c1", evil, text=evil, summary=evil),
    )
    error = ev.ErrorEvent(
        error=evil, error_type="X", retriable=False, iteration=1, req_id="r1", log_time="", task_id="t"
    )
    transcript = Transcript(evil, evil, evil)
    for event in (*events, error, turn_end("error")):
        transcript.apply(event)
    transcript.finish(Footer(status=evil, files=[evil], variables_new=[evil]))
    forms = bundle(transcript)
    assert "<img" not in forms["text/html"]
    outside_fences = re.sub(r"(?m)^(`{3,})[^\n]*\n.*?^\1$", "", forms["text/markdown"], flags=re.DOTALL)
    assert "<img" not in outside_fences.replace("\\<", "")


def test_a_result_that_closes_its_fence_stays_in_it() -> None:
    transcript = record(request(), proposed(), finished(text="```\n# not a heading\n````\n<b>"))
    assert "`````\n```\n# not a heading\n````\n<b>\n`````" in bundle(transcript)["text/markdown"]


def test_a_picture_that_is_too_big_or_could_run_scripts_is_named_instead() -> None:
    images = (ImageData(b"<svg onload=x>", "image/svg+xml"), ImageData(b"\0" * 5_000_000))
    html = bundle(record(request(), proposed(), finished(images=images)))["text/html"]
    assert "<img" not in html
    assert "A picture of 5.0 MB (image/png) is not shown here." in html


def test_a_long_result_says_how_much_is_missing() -> None:
    plain = bundle(record(request(), proposed(), finished(text="line\n" * 10_000)))["text/plain"]
    assert len(plain) < 40_000
    assert "characters left out" in plain
