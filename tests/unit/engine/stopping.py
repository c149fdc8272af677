"""A turn with everything in it, and stopping one at the right moment."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from tests.unit.engine.play import check_turn, drain, make_engine
from zq_notebook.engine.events import Event
from zq_notebook.engine.turn import TurnEngine
from zq_notebook.errors import NetworkError
from zq_notebook.providers.scripted import Step

# What a turn with everything in it yields; compaction has its own tests.
SEEN = [
    "turn_start",
    "queue_steering",
    "llm_request",
    "llm_retry",
    "reasoning_delta",
    "assistant_delta",
    "assistant_message",
    "tool_proposed",
    "tool_started",
    "ask_user_question",
    "plan_proposed",
    "directory_requested",
    "tool_finished",
    "permission_required",
    "iteration_end",
]


def everything(monkeypatch: pytest.MonkeyPatch) -> TurnEngine:
    """An engine whose turn has all these events."""
    monkeypatch.setenv("NETWORK_RETRY_BASE_MS", "1")

    async def ask(args: Any, ctx: Any) -> str:
        ctx.emit("ask_user_question", question="q", options=[], allow_text=True, multi=False)
        ctx.emit("plan_proposed", plan="p")
        ctx.emit("directory_requested", reason="r", path="/p", writable=False)
        await asyncio.sleep(0)
        return "answer"

    steps = [
        Step(error=NetworkError("lost")),
        Step("say it", reasoning="think it", tool_calls=[("ask", {}), ("act", {}), ("ask", {})]),
        "the end",
    ]
    engine = make_engine(steps, low={"ask": ask}, high={"act": lambda args: "done"}, approver=lambda request: "once")
    engine.queue_steering("and this")
    return engine


async def stop_when(engine: TurnEngine, started: asyncio.Event | threading.Event) -> tuple[list[Event], float]:
    """Run a turn, stop it once ``started`` is set, and return its events and the seconds the stop took."""
    turn = asyncio.ensure_future(drain(engine.run("go")))
    if isinstance(started, asyncio.Event):
        await started.wait()
    else:
        await asyncio.to_thread(started.wait)
    begun = time.monotonic()
    engine.request_interrupt()
    events = await turn
    check_turn(events, engine)
    assert events[-1].data["status"] == "interrupted"
    return events, time.monotonic() - begun
