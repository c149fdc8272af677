"""One turn at a time: second turns, other threads, other loops, turns that clean up (Manual §12.6)."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from typing import Any

import pytest

from tests.unit.engine.play import check_history, check_turn, drain, make_engine, play, types
from zq_notebook.engine.events import Event
from zq_notebook.engine.turn import TurnEngine
from zq_notebook.errors import EngineBusyError
from zq_notebook.providers.scripted import Step


async def test_a_second_turn_on_a_busy_engine_raises_and_harms_nothing() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def tool(args: Any) -> str:
        started.set()
        await release.wait()
        return "whole"

    engine = make_engine([Step("", tool_calls=[("tool", {})]), "done", "second"], low={"tool": tool})
    turn = asyncio.ensure_future(drain(engine.run("first")))
    await started.wait()
    assert engine.busy
    before = list(engine.messages)
    for again in (engine.run("second"), engine.resume()):
        with pytest.raises(EngineBusyError, match="in the middle of a turn"):
            await drain(again)
    assert engine.messages == before
    release.set()
    events = await turn
    check_turn(events, engine)
    assert events[-1].data["status"] == "completed"
    assert "second" not in str(engine.messages)
    await play(engine)


async def test_a_second_turn_from_another_thread_raises() -> None:
    engine = make_engine(["one two three", "second"])
    raised: list[BaseException] = []

    def other() -> None:
        try:
            asyncio.run(drain(engine.run("me too")))
        except EngineBusyError as error:
            raised.append(error)

    events = []
    async for event in engine.run("first"):
        events.append(event)
        if event.type == "assistant_delta":
            await asyncio.to_thread(other)
    check_turn(events, engine)
    assert len(raised) == 3


async def test_two_threads_that_begin_at_the_same_time_get_one_turn() -> None:
    for _ in range(20):
        engine = make_engine(["one", "two"])
        start = threading.Barrier(2)
        ended: list[str] = []

        def begin(engine: TurnEngine = engine, start: threading.Barrier = start, ended: list[str] = ended) -> None:
            start.wait()
            try:
                asyncio.run(drain(engine.run("go")))
                ended.append("played")
            except EngineBusyError:
                ended.append("busy")

        await asyncio.gather(asyncio.to_thread(begin), asyncio.to_thread(begin))
        assert "played" in ended
        assert len(ended) == 2
        check_history(engine)


async def test_the_next_turn_may_begin_at_turn_end_before_the_stream_is_done() -> None:
    engine = make_engine(["one", "two"])
    inner: list[Event] = []
    async for event in engine.run("first"):
        if event.type == "turn_end":
            assert not engine.busy
            inner = await drain(engine.run("second"))
    assert inner[-1].data["status"] == "completed"
    check_history(engine)


async def test_a_stream_that_is_kept_but_not_read_keeps_the_engine_busy() -> None:
    engine = make_engine(["one", "two"])
    stream = engine.run("first")
    await anext(stream)
    with pytest.raises(EngineBusyError):
        await drain(engine.run("second"))
    rest = await drain(stream)
    assert rest[-1].data["status"] == "completed"


async def test_the_next_turn_waits_for_a_cleanup_that_takes_its_time() -> None:
    started = asyncio.Event()

    async def tidy(args: Any) -> None:
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.05)

    engine = make_engine([Step("", tool_calls=[("tidy", {})]), "next"], low={"tidy": tidy})
    async for event in engine.run("first"):
        if event.type == "tool_started":
            await started.wait()
            break
    assert (await play(engine, "second"))[-1].data["status"] == "completed"


async def test_a_tool_left_alone_is_not_waited_for_again_when_the_consumer_leaves() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def stubborn(args: Any) -> None:
        started.set()
        while not release.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await release.wait()

    engine = make_engine([Step("", tool_calls=[("stubborn", {})]), "next"], low={"stubborn": stubborn})
    try:
        async for event in engine.run("first"):
            if event.type == "tool_started":
                await started.wait()
                engine.request_interrupt()
            if event.type == "tool_finished":
                break
        begun = time.monotonic()
        await play(engine, "second")
        assert time.monotonic() - begun < 1.5
    finally:
        release.set()


async def test_a_turn_that_waits_for_an_abandoned_one_can_be_cancelled() -> None:
    release = asyncio.Event()
    started = asyncio.Event()

    async def stubborn(args: Any) -> None:
        started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await release.wait()
        await release.wait()

    engine = make_engine([Step("", tool_calls=[("stubborn", {})]), "next"], low={"stubborn": stubborn})
    async for event in engine.run("first"):
        if event.type == "tool_started":
            await started.wait()
            break
    second = asyncio.ensure_future(drain(engine.run("second")))
    for _ in range(5):
        await asyncio.sleep(0)
    assert engine.busy
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    release.set()
    await play(engine)


def test_one_engine_on_several_loops_one_after_the_other() -> None:
    engine = make_engine(["one", "two two", "three"])
    asyncio.run(play(engine))

    async def leave() -> None:
        async for event in engine.run("go"):
            if event.type == "assistant_delta":
                break

    asyncio.run(leave())
    assert not engine.busy
    asyncio.run(play(engine))


def test_a_turn_whose_loop_was_closed_under_it_does_not_block_the_engine_for_ever() -> None:
    engine = make_engine([Step("", tool_calls=[("look", {})]), "next"], low={"look": lambda args: 1})
    loop = asyncio.new_event_loop()
    stream = engine.run("go")

    async def until_proposed() -> None:
        async for event in stream:
            if event.type == "tool_proposed":
                return

    loop.run_until_complete(until_proposed())
    loop.close()
    assert engine.busy
    asyncio.run(play(engine))
    assert types(asyncio.run(_again(engine)))[-1] == "turn_end"


async def _again(engine: TurnEngine) -> list[Event]:
    engine.provider.steps.append("more")  # type: ignore[attr-defined]
    return await play(engine)
