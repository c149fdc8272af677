"""Stopping, leaving and breaking off while a summary is being made: the history stays as it was."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

from tests.unit.engine_compaction.helpers import engine_with, one, system, talk, types
from zq_notebook.engine.history import problems
from zq_notebook.providers.scripted import ScriptedProvider, Step


class SlowNotes(ScriptedProvider):
    """Never gives its summary unless it is stopped; then, as a real provider may, a part of it."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked = asyncio.Event()
        self.stubborn = False

    async def chat(self, model: str, messages: Any, options: Any, opts: Any, params: Any = None) -> str | None:
        self.asked.set()
        await (opts.cancel.wait_async() if self.stubborn else asyncio.Event().wait())
        return "half of the no"


async def stop_when_asked(stubborn: bool, root: Path) -> None:
    provider = SlowNotes(["later"])
    provider.stubborn = stubborn
    engine = engine_with(provider, root, messages=[system(), *talk(4)], context_window=1000)
    before = [dict(message) for message in engine.messages]

    async def stop() -> None:
        await provider.asked.wait()
        engine.request_interrupt()

    stopper = asyncio.create_task(stop())
    events = [event async for event in engine.run("and now?")]
    await stopper
    assert types(events) == ["turn_start", "compacting", "llm_request", "interrupted", "turn_end"]
    assert events[-1].data["status"] == "interrupted"
    assert engine.messages == [*before, {"role": "user", "content": "and now?"}]
    assert problems(engine.messages) == []
    assert engine.compaction_state.compactions == 0


async def test_stop_during_the_summary_changes_nothing(tmp_path: Path) -> None:
    await stop_when_asked(False, tmp_path)


async def test_a_partial_summary_of_a_stopped_request_is_not_used(tmp_path: Path) -> None:
    await stop_when_asked(True, tmp_path)


async def test_an_error_that_the_stop_provoked_is_not_a_reason_to_trim(tmp_path: Path) -> None:
    class Breaking(ScriptedProvider):
        async def chat(self, model: str, messages: Any, options: Any, opts: Any, params: Any = None) -> str | None:
            engine.request_interrupt()
            raise RuntimeError("connection closed")

    engine = engine_with(Breaking(["later"]), tmp_path, messages=[system(), *talk(4)], context_window=1000)
    events = [event async for event in engine.run("and now?")]
    assert types(events) == ["turn_start", "compacting", "llm_request", "interrupted", "turn_end"]
    assert len(engine.messages) == 10


async def test_stop_during_a_streamed_summary_changes_nothing(tmp_path: Path) -> None:
    provider = ScriptedProvider([Step("a long summary that takes its time", delay=30)])
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(4)], context_window=1000)
    events = []
    async for event in engine.run("and now?"):
        events.append(event)
        if event.type == "llm_request":
            asyncio.get_running_loop().call_soon(engine.request_interrupt)
    assert types(events) == ["turn_start", "compacting", "llm_request", "interrupted", "turn_end"]
    assert len(engine.messages) == 10


async def test_leaving_the_stream_during_compaction_changes_nothing(tmp_path: Path) -> None:
    for kind in ("compacting", "llm_request"):
        provider = ScriptedProvider(["ok"], chat_replies=["notes"])
        engine = engine_with(provider, tmp_path, messages=[system(), *talk(4)], context_window=1000)
        async with aclosing(engine.run("and now?")) as events:
            async for event in events:
                if event.type == kind:
                    break
        assert len(engine.messages) == 10
        assert not engine.busy
        events_of_next_turn = [event async for event in engine.run("again")]
        assert one(events_of_next_turn, "compacted").method == "summarized"


async def test_a_cut_stream_is_not_a_summary(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("NETWORK_RETRY_BASE_MS", "1")
    monkeypatch.setenv("NETWORK_RETRY_MAX", "1")
    cut = Step("half of the no", finish_reason="")
    provider = ScriptedProvider([cut, "the whole notes", "ok"])
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(4)], context_window=1000)
    events = [event async for event in engine.run("go on")]
    assert one(events, "llm_retry").attempt == 1
    assert one(events, "compacted").summary_preview == "the whole notes"


async def test_a_streamed_summary_ends_at_its_cap(tmp_path: Path) -> None:
    endless = Step("word " * 50_000, chunk_size=1000)
    engine = engine_with(
        ScriptedProvider([endless, "ok"]), tmp_path, messages=[system(), *talk(40, 4000)], context_window=100_000
    )
    events = [event async for event in engine.run("go on")]
    assert one(events, "compacted").method == "summarized"
    assert len(engine.messages[1]["content"]) < 12_200
