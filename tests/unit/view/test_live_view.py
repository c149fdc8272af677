"""The live view's Python side: who may answer, and when anything is sent."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.unit.view.play import delta, request
from zq_notebook.engine.approval import ApprovalReply, PermissionRequest
from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.view.approval import approval_card
from zq_notebook.notebook.view.live import LiveView


class Watched(LiveView):
    """A live view whose messages are kept instead of sent."""

    def __init__(self) -> None:
        self.sent = list[dict[str, Any]]()
        self.sending = asyncio.Event()
        self.stops = 0
        super().__init__(Transcript("analyst", "m", "interactive"), self._count)

    def _count(self) -> None:
        self.stops += 1

    def _send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        self.sending.set()

    def ready(self) -> None:
        self._on_message({"t": "ready", "view": "v", "page": "p"})


def ask(view: LiveView, answers: list[ApprovalReply], *, command: bool = False) -> None:
    asked = PermissionRequest(
        tool_name="run_shell", arguments={"command": "ls"}, metadata=None, reason="", tool_call_id="c1"
    )
    view.ask(approval_card(asked, workspace=Path("/w"), can_always_command=command), answers.append)


async def test_nothing_is_sent_before_a_page_has_drawn_the_cell_and_then_everything() -> None:
    view = Watched()
    view.apply([request(), delta("early")])
    view.tick()
    assert view.sent == []
    assert not await view.wait_ready(0.01)
    view.ready()
    assert view.acknowledged
    assert await view.wait_ready(0.01)
    assert ["+", 1, "early"] in view.sent[0]["o"]


async def test_text_alone_is_sent_a_moment_later_without_another_call() -> None:
    view = Watched()
    view.ready()
    view.apply([request(), delta("a")])
    view.sending.clear()
    view.apply([delta("b")])
    async with asyncio.timeout(2):
        await view.sending.wait()
    assert view.sent[-1]["o"] == [["+", 1, "b"]]


async def test_the_first_answer_counts_and_an_unknown_one_does_not() -> None:
    view, answers = Watched(), list[ApprovalReply]()
    view.ready()
    ask(view, answers)
    for message in (
        {"t": "answer", "call": "other", "outcome": "once"},
        {"t": "answer", "call": "c1", "outcome": "nonsense"},
        {"t": "answer", "call": "c1", "outcome": "always_command"},  # this card has no such button
        {"t": "answer", "call": "c1", "outcome": "deny", "reason": " not here "},
        {"t": "answer", "call": "c1", "outcome": "once"},
    ):
        view._on_message(message)
    assert answers == [ApprovalReply("deny", reason="not here", answered_by="card")]


@pytest.mark.parametrize("reason", ["", "  ", None, 3])
async def test_an_empty_reason_is_none(reason: object) -> None:
    view, answers = Watched(), list[ApprovalReply]()
    ask(view, answers, command=True)
    view._on_message({"t": "answer", "call": "c1", "outcome": "always_command", "reason": reason})
    assert answers == [ApprovalReply("always_command", answered_by="card")]


async def test_stop_reaches_the_turn() -> None:
    view = Watched()
    view._on_message({"t": "stop"})
    assert view.stops == 1


async def test_messages_from_another_version_are_ignored() -> None:
    view = Watched()
    for message in ({}, {"t": "new"}, {"t": "ready"}, {"t": "answer", "call": 3}):
        view._on_message(message)
    assert view.sent == []


def test_widgets_are_available_here() -> None:
    assert LiveView.available() is None
