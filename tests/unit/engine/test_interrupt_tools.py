"""Stopping while a tool runs or an approver is asked (Manual §12.2)."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

from tests.unit.engine.play import make_engine, of_type, play, results, statuses
from tests.unit.engine.stopping import stop_when
from zq_notebook.engine.approval import PermissionRequest
from zq_notebook.permissions.decision import Decision, PermissionEngine
from zq_notebook.providers.scripted import Step


async def test_a_blocking_tool_that_ignores_everything_is_left_alone() -> None:
    started, release = threading.Event(), threading.Event()

    def block(args: Any) -> None:
        started.set()
        release.wait(30)

    try:
        events, seconds = await stop_when(
            make_engine([Step("", tool_calls=[("block", {})])], low={"block": block}), started
        )
    finally:
        release.set()
    assert seconds < 2.5
    assert statuses(events) == ["interrupted"]


async def test_an_async_tool_is_cancelled() -> None:
    started, ended = asyncio.Event(), []

    async def sleep(args: Any) -> None:
        started.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    engine = make_engine([Step("", tool_calls=[("sleep", {})])], low={"sleep": sleep})
    events, seconds = await stop_when(engine, started)
    assert seconds < 1.5
    assert ended == ["cancelled"]
    assert of_type(events, "tool_finished")[0].data["duration"] >= 0


async def test_a_tool_that_watches_the_token_hands_over_what_it_has() -> None:
    started = threading.Event()

    def in_a_thread(args: Any, ctx: Any) -> str:
        started.set()
        assert ctx.cancel.wait(30) is True
        return "half of it"

    async def in_the_loop(args: Any, ctx: Any) -> str:
        started.set()
        assert await ctx.signal.wait(30) is True
        return "half of it"

    for tool in (in_a_thread, in_the_loop):
        started.clear()
        engine = make_engine([Step("", tool_calls=[("look", {})])], low={"look": tool})
        events, seconds = await stop_when(engine, started)
        assert seconds < 1
        assert statuses(events) == ["interrupted"]
        assert results(engine) == ["half of it"]


async def test_a_tool_that_swallows_its_cancellation_is_left_alone() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def stubborn(args: Any) -> str:
        started.set()
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()
        return "much later"

    engine = make_engine([Step("", tool_calls=[("stubborn", {})]), "next"], low={"stubborn": stubborn})
    try:
        events, seconds = await stop_when(engine, started)
        assert seconds < 2.9
        assert statuses(events) == ["interrupted"]
        before = list(engine.messages)
    finally:
        release.set()
    for _ in range(20):
        await asyncio.sleep(0.005)
    assert engine.messages == before


async def test_calls_after_the_stopped_one_do_not_run() -> None:
    ran: list[str] = []
    started = asyncio.Event()

    async def first(args: Any) -> None:
        started.set()
        await asyncio.sleep(3600)

    calls = [("first", {}), ("second", {}), ("look", {})]
    engine = make_engine(
        [Step("", tool_calls=calls)],
        high={"first": first, "second": lambda args: ran.append("second")},
        low={"look": lambda args: ran.append("look")},
        approver=lambda request: "once",
    )
    events, _ = await stop_when(engine, started)
    assert statuses(events) == ["interrupted"] * 3
    assert ran == []
    assert len(results(engine)) == 3


async def test_the_approvers_coroutine_is_cancelled() -> None:
    asked, ended = asyncio.Event(), []

    async def approve(request: PermissionRequest) -> str:
        asked.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("cancelled")
        return "once"

    ran: list[Any] = []
    engine = make_engine([Step("", tool_calls=[("act", {})])], high={"act": ran.append}, approver=approve)
    events, seconds = await stop_when(engine, asked)
    assert seconds < 1
    assert ended == ["cancelled"]
    assert ran == []
    assert statuses(events) == ["interrupted"]


async def test_nobody_is_shown_a_question_that_will_not_be_asked() -> None:
    engine = make_engine([Step("", tool_calls=[("act", {})])], high={"act": str}, approver=lambda request: "once")

    class Stopping(PermissionEngine):
        def evaluate(self, *args: Any) -> Decision:
            engine.request_interrupt()
            return super().evaluate(*args)

    engine.permissions = Stopping()
    events = await play(engine)
    assert of_type(events, "permission_required") == []
    assert statuses(events) == ["interrupted"]


async def test_an_approver_that_says_yes_when_it_is_cancelled_runs_nothing() -> None:
    asked = asyncio.Event()

    async def approve(request: PermissionRequest) -> str:
        asked.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        return "once"

    ran: list[Any] = []
    engine = make_engine([Step("", tool_calls=[("act", {})])], high={"act": ran.append}, approver=approve)
    events, _ = await stop_when(engine, asked)
    assert ran == []
    assert of_type(events, "tool_started") == []


async def test_a_blocking_approver_during_which_the_user_stops_runs_nothing() -> None:
    ran: list[Any] = []
    engine = make_engine([Step("", tool_calls=[("act", {})])], high={"act": ran.append})
    engine.set_approver(lambda request: engine.request_interrupt() or "once")  # type: ignore[func-returns-value]
    events = await play(engine)
    assert ran == []
    assert statuses(events) == ["interrupted"]


async def test_a_callback_of_a_tool_that_fails_does_not_reach_who_stops() -> None:
    started = asyncio.Event()

    async def tool(args: Any, ctx: Any) -> None:
        ctx.cancel.on_cancel(lambda: 1 / 0)
        started.set()
        await asyncio.sleep(3600)

    await stop_when(make_engine([Step("", tool_calls=[("t", {})])], low={"t": tool}), started)
