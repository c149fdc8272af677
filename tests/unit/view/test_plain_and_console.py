"""A turn without a browser: pieces in order, the same on every run, and a terminal that text cannot steer."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from tests.unit.view.play import Clock, delta, finished, message, proposed, reasoning, request, small_turn, turn_end
from zq_notebook.engine import events as ev
from zq_notebook.engine.approval import ApprovalReply
from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.transcript_blocks import Footer
from zq_notebook.notebook.view.console import ConsoleView
from zq_notebook.notebook.view.plain import PlainView

DENIED = ApprovalReply("deny", reason="nobody is here to answer (unattended policy: deny)", answered_by="policy")


def outputs(events: Iterable[ev.Event], *, speed: float = 1.0, answer: ApprovalReply | None = None) -> list[Any]:
    shown = list[Any]()
    clock = Clock()
    view = PlainView(Transcript("analyst", "demo", "interactive", clock), shown.append)
    view.open()
    for event in events:
        clock.now += speed
        view.apply([event])
        view.tick()
        if answer is not None and isinstance(event, ev.ToolProposed):
            view.approval_closed(event.req_id, answer)
    view.set_usage(int(speed * 1000), speed / 100)
    view.close(Footer(files=["out.csv"], variables_new=["total"], tokens=int(speed * 1000), cost=0.1, elapsed=speed))
    return shown


def test_pieces_come_in_order_and_pictures_by_themselves() -> None:
    shown = outputs(small_turn())
    assert [piece["text/plain"].splitlines()[0] for piece in shown] == [
        "analyst · demo · asks before acting",
        "Thought:",
        "I will **compute** it.",
        "✓ run_code total = 41 + 1… · int",
        "Picture from run_code",
        "It is `42`.",
        "variables: total new · files: out.csv",
    ]
    assert sorted(shown[4]) == ["image/png", "text/plain"]
    assert all(sorted(piece) == ["text/markdown", "text/plain"] for piece in [*shown[:4], *shown[5:]])


def test_the_same_script_gives_the_same_bytes_at_any_speed() -> None:
    assert outputs(small_turn(), speed=0.01) == outputs(small_turn(), speed=7.3)


def test_a_denial_is_a_line_that_says_who_refused() -> None:
    denied = ev.ToolFinished(task_id="t", req_id="c1", name="run_code", status="denied", reason="denied")
    shown = outputs([request(), message("", ["run_code"]), proposed(), denied, turn_end()], answer=DENIED)
    line = "Denied `run_code`: nobody is here to answer (unattended policy: deny)."
    assert shown[1]["text/markdown"].startswith(line)
    assert shown[1]["text/plain"].startswith(line.replace("`", ""))


def test_a_reply_that_broke_off_was_never_shown() -> None:
    retry = ev.LlmRetry(attempt=1, max=2, reason="lost", wait_ms=1, iteration=1, req_id="r1")
    shown = outputs([request(), reasoning("hm"), delta("half"), retry, delta("whole"), message("whole"), turn_end()])
    assert not any("half" in piece["text/plain"] or "hm" in piece["text/plain"] for piece in shown)
    assert any(piece["text/plain"] == "whole" for piece in shown)


def test_calls_that_end_out_of_order_are_shown_in_order() -> None:
    events = [
        request(), message("", ["a", "b"]), proposed("c1", "a", name="x"), proposed("c2", "b", name="y"),
        finished("c2", "b"), finished("c1", "a"), turn_end(),
    ]  # fmt: skip
    lines = [piece["text/plain"].splitlines()[0] for piece in outputs(events)]
    assert lines[1:3] == ["✓ a x", "✓ b y"]


def test_an_interrupted_turn_shows_what_there_was() -> None:
    shown = outputs([request(), delta("so far"), ev.Interrupted(iterations=1, req_id="r", task_id="t"), turn_end()])
    assert [piece["text/plain"] for piece in shown[1:3]] == ["so far", "Interrupted."]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def console(stream: io.StringIO, events: Iterable[ev.Event]) -> str:
    view = ConsoleView(Transcript("analyst", "demo", "interactive"), stream)
    view.open()
    for event in events:
        view.apply([event])
    view.close(Footer())
    return stream.getvalue()


def test_a_pipe_gets_text_without_colours() -> None:
    text = console(io.StringIO(), small_turn())
    assert "\x1b" not in text
    assert text.index("I will **compute** it.") < text.index("✓ run_code") < text.index("It is `42`.")


def test_a_terminal_gets_colours_and_nothing_that_steers_it() -> None:
    text = console(Terminal(), [request(), delta("a\x1b[2Jb"), message("a\x1b[2Jb"), turn_end()])
    assert "\x1b[2m" in text
    assert "\x1b[2J" not in text
    assert "a⟨U+001B⟩[2Jb" in text
