"""Leaving a turn: break, aclose, cancellation, other turns, other loops, other threads (Manual §9.1, §12.6)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.unit.engine.play import check_history, check_turn, drain, make_engine, of_type, play, results
from tests.unit.engine.stopping import SEEN, everything
from zq_notebook.engine.events import Event
from zq_notebook.engine.hooks import EngineHook
from zq_notebook.engine.messages import StreamChunk
from zq_notebook.providers.scripted import Step


class Listener(EngineHook):
    """What a hook hears, in order."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_turn_start(self, input: str) -> None:
        self.heard.append("turn_start")

    def on_turn_end(self, status: str, iterations: int, produced_files: Any) -> None:
        self.heard.append(f"turn_end {status}")

    def on_tool_proposed(self, name: str, args: Any) -> None:
        self.heard.append("proposed")

    def on_tool_finished(self, name: str, status: str, result_preview: str) -> None:
        self.heard.append("finished")


class Endless:
    """A model that goes on talking; counts what was read of it, and whether its stream was closed."""

    def __init__(self) -> None:
        self.read = 0
        self.closed = 0

    async def stream(self, model: str, messages: Any, tools: Any, opts: Any) -> AsyncIterator[StreamChunk]:
        try:
            while True:
                self.read += 1
                yield StreamChunk(content=str(self.read))
                await asyncio.sleep(0)
        finally:
            self.closed += 1

    async def chat(self, *args: Any) -> str | None:
        return None


async def test_a_slow_consumer_keeps_the_model_from_being_read_ahead() -> None:
    provider = Endless()
    stream = make_engine(provider).run("go")
    for _ in range(3):
        await anext(stream)
    assert provider.read == 1
    for _ in range(50):
        await asyncio.sleep(0)
    assert provider.read == 1
    await anext(stream)
    assert provider.read == 2
    await stream.aclose()
    assert provider.closed == 1


async def test_a_slow_consumer_keeps_the_next_batch_from_starting() -> None:
    ran: list[str] = []
    calls = [("look", {}), ("act", {})]
    engine = make_engine(
        [Step("", tool_calls=calls), "ok"],
        low={"look": lambda args: ran.append("look")},
        high={"act": lambda args: ran.append("act")},
        approver=lambda request: "once",
    )
    async for event in engine.run("go"):
        if event.type == "tool_proposed":
            await asyncio.sleep(0.01)
            assert ran == []
        if event.type == "tool_finished" and event.data["name"] == "look":
            await asyncio.sleep(0.01)
            assert ran == ["look"]
    assert ran == ["look", "act"]


@pytest.mark.parametrize("name", [*SEEN, "turn_end"])
@pytest.mark.parametrize("how", ["break", "aclose", "raise", "wrapped"])
async def test_left_at_every_event(monkeypatch: pytest.MonkeyPatch, name: str, how: str) -> None:
    engine = everything(monkeypatch)
    engine.hook = hook = Listener()

    async def consume() -> None:
        async for event in engine.run("go"):
            if event.type == name:
                if how == "raise":
                    raise KeyError(name)
                break

    async def wrap() -> AsyncIterator[Event]:
        async for event in engine.run("go"):
            yield event

    if how == "aclose":
        stream = engine.run("go")
        async for event in stream:
            if event.type == name:
                break
        await stream.aclose()
        assert not engine.busy
    elif how == "wrapped":
        async for event in wrap():
            if event.type == name:
                break
    else:
        with contextlib.suppress(KeyError):
            await consume()
    # The next turn works at once.
    engine.provider.steps[engine.provider.position :] = ["next"]  # type: ignore[attr-defined]
    events = await play(engine)
    assert events[-1].data["status"] == "completed"
    first = hook.heard[: hook.heard.index("turn_start", 1)]
    ends = [heard for heard in first if heard.startswith("turn_end")]
    assert ends == ["turn_end completed" if name == "turn_end" else "turn_end interrupted"]
    assert first[-1] == ends[0]
    assert first.count("proposed") == first.count("finished")


@pytest.mark.parametrize("name", [*SEEN, "turn_end"])
async def test_consumer_cancelled_at_every_event(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    engine = everything(monkeypatch)
    engine.hook = hook = Listener()
    reached = asyncio.Event()

    async def consume() -> None:
        async for event in engine.run("go"):
            if event.type == name:
                reached.set()
                await asyncio.sleep(3600)

    task = asyncio.ensure_future(consume())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    engine.provider.steps[engine.provider.position :] = ["next"]  # type: ignore[attr-defined]
    events = await play(engine)
    assert events[-1].data["status"] == "completed"
    assert len([heard for heard in hook.heard if heard.startswith("turn_end")]) == 2


@pytest.mark.parametrize("rounds", range(1, 60, 3))
async def test_consumer_cancelled_in_the_middle_of_anything(monkeypatch: pytest.MonkeyPatch, rounds: int) -> None:
    engine = everything(monkeypatch)
    engine.hook = hook = Listener()
    task = asyncio.ensure_future(drain(engine.run("go")))
    for _ in range(rounds):
        await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert not engine.busy
    check_history(engine)
    assert [heard.split()[0] for heard in hook.heard if heard.startswith("turn_")] in ([], ["turn_start", "turn_end"])
    assert hook.heard.count("proposed") == hook.heard.count("finished")


async def test_a_running_tool_is_told_and_cancelled_when_the_consumer_leaves() -> None:
    log: list[str] = []
    started = asyncio.Event()

    async def tool(args: Any, ctx: Any) -> None:
        ctx.cancel.on_cancel(lambda: log.append("told"))
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            log.append("ended")

    engine = make_engine([Step("", tool_calls=[("tool", {})]), "next"], low={"tool": tool})
    async for event in engine.run("go"):
        if event.type == "tool_started":
            await started.wait()
            break
    await play(engine)
    assert log == ["told", "ended"]
    assert "Interrupted" in results(engine)[0]


async def test_leaving_at_permission_required_asks_nobody_and_runs_nothing() -> None:
    log: list[str] = []
    engine = make_engine([Step("", tool_calls=[("act", {})]), "next"], high={"act": lambda args: log.append("ran")})
    engine.set_approver(lambda request: log.append("asked") or "once")  # type: ignore[func-returns-value]
    async for event in engine.run("go"):
        if event.type == "permission_required":
            break
    await play(engine)
    assert log == []


async def test_the_models_stream_is_closed_when_the_consumer_leaves() -> None:
    provider = Endless()
    engine = make_engine(provider)
    async for event in engine.run("go"):
        if event.type == "assistant_delta":
            break
    gc.collect()
    for _ in range(10):
        await asyncio.sleep(0)
    assert provider.closed == 1
    assert not engine.busy
    assert engine.messages[-1] == {"role": "assistant", "content": "1"}


async def test_a_stream_that_cannot_be_closed_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Bad:
        async def stream(self, *args: Any) -> AsyncIterator[StreamChunk]:
            try:
                yield StreamChunk(content="x", finish_reason="stop")
            finally:
                raise OSError("socket already gone")

        async def chat(self, *args: Any) -> str | None:
            return None

    engine = make_engine(Bad())
    async for event in engine.run("go"):
        if event.type == "assistant_delta":
            break
    for _ in range(10):
        await asyncio.sleep(0)
    assert not engine.busy
    assert "could not be closed" in caplog.text


async def test_events_of_one_turn_read_by_different_tasks() -> None:
    engine = make_engine([Step("a b", tool_calls=[("look", {})]), "done"], low={"look": lambda args: 1})
    stream = engine.run("go")
    events: list[Event] = []
    while True:
        try:
            events.append(await asyncio.wait_for(anext(stream), 5))
        except StopAsyncIteration:
            break
    check_turn(events, engine)
    assert of_type(events, "tool_finished")[0].data["status"] == "ok"
