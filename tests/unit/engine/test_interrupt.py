"""Stopping a turn: at every event, during everything that can be waited for, from everywhere (Manual §12.2)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.unit.engine.play import check_turn, drain, make_engine, of_type, play, results
from tests.unit.engine.stopping import SEEN, everything, stop_when
from zq_notebook.cancel import CancelToken
from zq_notebook.engine.events import Event, EventType
from zq_notebook.engine.messages import StreamChunk
from zq_notebook.engine.turn import TurnEngine
from zq_notebook.errors import NetworkError
from zq_notebook.providers.scripted import Step


async def test_the_turn_used_here_has_all_events(monkeypatch: pytest.MonkeyPatch) -> None:
    events = await play(everything(monkeypatch))
    assert set(SEEN) | {"turn_end"} == {event.type.value for event in events}


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("how", ["consumer", "twice", "thread", "hook"])
async def test_stopped_at_every_event(monkeypatch: pytest.MonkeyPatch, name: str, how: str) -> None:
    engine = everything(monkeypatch)
    events = []
    async for event in engine.run("go"):
        events.append(event)
        if event.type != name or len(of_type(events, name)) > 1:
            continue
        if how == "thread":
            await asyncio.to_thread(engine.request_interrupt)
        else:
            engine.request_interrupt()
        if how == "twice":
            engine.request_interrupt()
    check_turn(events, engine)
    assert events[-2].type is EventType.INTERRUPTED
    assert set(events[-2].data) == {"iterations", "reqId", "taskId"}
    assert events[-1].data["status"] == "interrupted"
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]
    await asyncio.sleep(0)
    # Nothing is left behind: the engine works on.
    engine.provider.steps[engine.provider.position :] = ["next"]  # type: ignore[attr-defined]
    events = await play(engine)
    assert events[-1].data["status"] == "completed"


async def test_stopped_at_turn_end_and_without_a_turn_changes_nothing() -> None:
    engine = make_engine(["one", "two"])
    engine.request_interrupt()
    async for event in engine.run("go"):
        if event.type == "turn_end":
            engine.request_interrupt()
            assert event.data["status"] == "completed"
    engine.request_interrupt()
    assert (await play(engine))[-1].data["status"] == "completed"


async def test_stopped_at_the_error_event_stays_an_error() -> None:
    engine = make_engine([Step(error=ValueError("bad"))])
    async for event in engine.run("go"):
        if event.type == "error":
            engine.request_interrupt()
        last = event
    assert last.data["status"] == "error"


async def test_partial_text_stays_in_the_history() -> None:
    engine = make_engine(["one two three four", "next"])
    async for event in engine.run("go"):
        if event.type == "assistant_delta" and event.data["text"] == " two":
            engine.request_interrupt()
    assert engine.messages[-1] == {"role": "assistant", "content": "one two"}
    await play(engine)


class Silent:
    """A model that says one word and then ``rest`` happens."""

    def __init__(self, rest: Callable[[], Any]) -> None:
        self.rest = rest
        self.started = asyncio.Event()
        self.closed = 0

    async def stream(self, model: str, messages: Any, tools: Any, opts: Any) -> AsyncIterator[StreamChunk]:
        try:
            yield StreamChunk(content="word")
            self.started.set()
            await self.rest()
            yield StreamChunk(content="late", finish_reason="stop")
        finally:
            self.closed += 1

    async def chat(self, *args: Any) -> str | None:
        return None


async def test_a_model_that_never_says_another_word() -> None:
    provider = Silent(lambda: asyncio.sleep(3600))
    events, seconds = await stop_when(make_engine(provider), provider.started)
    assert provider.closed == 1
    assert seconds < 1
    assert [event.data["text"] for event in of_type(events, "assistant_delta")] == ["word"]


async def test_a_model_that_ignores_cancellation_until_its_next_chunk() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)

    provider = Silent(stubborn)
    events, _ = await stop_when(make_engine(provider), provider.started)
    assert provider.closed == 1
    assert len(of_type(events, "assistant_delta")) == 1


async def test_a_model_that_answers_cancellation_with_an_error_of_its_own() -> None:
    async def translate() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise NetworkError("connection closed") from None

    provider = Silent(translate)
    events, _ = await stop_when(make_engine(provider), provider.started)
    assert of_type(events, "error") == of_type(events, "llm_retry") == []


async def test_a_model_that_looks_at_the_token_itself_and_just_ends() -> None:
    class Polite:
        async def stream(self, model: str, messages: Any, tools: Any, opts: Any) -> AsyncIterator[StreamChunk]:
            yield StreamChunk(content="word")
            await opts.cancel.wait_async()

        async def chat(self, *args: Any) -> str | None:
            return None

    engine = make_engine(Polite())
    async for event in engine.run("go"):
        last = event
        if event.type == "assistant_delta":
            engine.request_interrupt()
    assert last.data["status"] == "interrupted"


async def test_a_model_that_yields_without_ever_suspending() -> None:
    class Flood:
        async def stream(self, model: str, messages: Any, tools: Any, opts: Any) -> AsyncIterator[StreamChunk]:
            for n in range(1_000_000):
                yield StreamChunk(content=str(n))

        async def chat(self, *args: Any) -> str | None:
            return None

    engine = make_engine(Flood())
    events = []
    async for event in engine.run("go"):
        events.append(event)
        if len(events) == 50:
            # Another thread, while this one never lets the loop turn.
            thread = threading.Thread(target=engine.request_interrupt)
            thread.start()
            thread.join()
    check_turn(events, engine)
    assert len(events) <= 53


async def test_a_model_that_hangs_while_the_stream_is_opened() -> None:
    started = asyncio.Event()

    class Hanging:
        async def stream(self, *args: Any) -> AsyncIterator[StreamChunk]:
            started.set()
            await asyncio.sleep(3600)
            raise AssertionError

        async def chat(self, *args: Any) -> str | None:
            return None

    await stop_when(make_engine(Hanging()), started)


async def test_while_waiting_for_the_next_try(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWORK_RETRY_BASE_MS", "3600000")
    engine = make_engine([Step(error=NetworkError("lost")), "never"])
    events = []
    async for event in engine.run("go"):
        events.append(event)
        if event.type == "llm_retry":
            asyncio.get_running_loop().call_soon(engine.request_interrupt)
    check_turn(events, engine)
    assert events[-1].data["status"] == "interrupted"


async def test_two_engines_and_only_one_is_stopped() -> None:
    started = [asyncio.Event(), asyncio.Event()]
    release = asyncio.Event()

    def engine(n: int) -> TurnEngine:
        async def tool(args: Any) -> str:
            started[n].set()
            await release.wait()
            return "whole"

        return make_engine([Step("", tool_calls=[("tool", {})]), "done"], low={"tool": tool})

    first, second = engine(0), engine(1)
    turns = [asyncio.ensure_future(drain(e.run("go"))) for e in (first, second)]
    for event in started:
        await event.wait()
    first.request_interrupt()
    assert (await turns[0])[-1].data["status"] == "interrupted"
    release.set()
    events = await turns[1]
    check_turn(events, second)
    assert events[-1].data["status"] == "completed"
    assert results(second) == ["whole"]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
async def test_from_a_signal_handler() -> None:
    started = asyncio.Event()

    async def tool(args: Any) -> None:
        started.set()
        await asyncio.sleep(3600)

    engine = make_engine([Step("", tool_calls=[("tool", {})])], low={"tool": tool})
    before = signal.signal(signal.SIGUSR1, lambda number, frame: engine.request_interrupt())
    try:
        turn = asyncio.ensure_future(drain(engine.run("go")))
        await started.wait()
        os.kill(os.getpid(), signal.SIGUSR1)
        events = await turn
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert events[-1].data["status"] == "interrupted"


async def test_timeout_around_the_consumer_ends_the_turn_as_a_timeout() -> None:
    provider = Silent(lambda: asyncio.sleep(3600))
    engine = make_engine(provider)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await drain(engine.run("go"))
    assert provider.closed == 1
    assert not engine.busy
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


async def test_cancelled_and_stopped_at_the_same_moment_is_cancelled() -> None:
    provider = Silent(lambda: asyncio.sleep(3600))
    engine = make_engine(provider)
    turn = asyncio.ensure_future(drain(engine.run("go")))
    await provider.started.wait()
    engine.request_interrupt()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert provider.closed == 1
    assert not engine.busy


async def test_consumer_that_was_cancelled_before_and_went_on_can_still_be_stopped() -> None:
    provider = Silent(lambda: asyncio.sleep(3600))
    engine = make_engine(provider)

    async def careless() -> list[Event]:
        with contextlib.suppress(asyncio.CancelledError):  # and no uncancel()
            await asyncio.sleep(3600)
        return await drain(engine.run("go"))

    turn = asyncio.ensure_future(careless())
    await asyncio.sleep(0)
    turn.cancel()
    await provider.started.wait()
    engine.request_interrupt()
    assert (await turn)[-1].data["status"] == "interrupted"


async def test_a_set_token_of_one_turn_does_not_touch_the_next() -> None:
    tokens: list[CancelToken] = []

    def tool(args: Any, ctx: Any) -> str:
        tokens.append(ctx.cancel)
        return "x"

    engine = make_engine([Step("", tool_calls=[("t", {})]), "one", "two"], low={"t": tool})
    await play(engine)
    tokens[0].set()
    assert (await play(engine))[-1].data["status"] == "completed"
