"""The server says that a request is too large: compact, send it again, and say nothing of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.engine_compaction.helpers import (
    INTRO,
    called,
    contents,
    engine_with,
    one,
    overflow,
    registry_with,
    system,
    talk,
    turn,
    types,
)
from zq_notebook.providers.scripted import ScriptedProvider, Step


async def test_the_request_is_sent_again_after_a_forced_compaction(tmp_path: Path) -> None:
    provider = ScriptedProvider([Step(error=overflow()), "answer"], chat_replies=["the notes"])
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(4)])
    events = await turn(engine, "and now?")
    assert types(events) == [
        "turn_start",
        "llm_request",
        "compacting",
        "llm_request",
        "compacted",
        "llm_request",
        "assistant_message",
        "iteration_end",
        "turn_end",
    ]
    assert one(events, "compacting").trigger == "overflow"
    assert one(events, "compacted").method == "summarized"
    assert events[-1].data["status"] == "completed"
    assert contents(provider.requests[1].messages)[1] == f"{INTRO}\n\nthe notes"
    assert contents(provider.requests[1].messages)[-1] == "and now?"
    assert engine.compaction_state.last_trigger == "overflow"


async def test_one_compaction_for_one_request_then_a_clear_error_that_can_be_retried(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        [Step(error=overflow()), Step(error=overflow()), "at last"], chat_replies=["notes", "more notes"]
    )
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(4)])
    events = await turn(engine)
    assert types(events).count("compacted") == 1
    error = one(events, "error")
    assert error.retriable
    assert error.error_type == "ContextOverflowError"
    assert error.error.startswith("The request is larger than the context window of m (400).")
    assert "already been left out" in error.error
    assert "\n" not in error.error
    assert "stack" not in error.data
    assert types(events)[-2:] == ["error", "turn_end"]
    assert events[-1].data["status"] == "error"
    assert engine.retriable
    again = [event async for event in engine.retry()]
    assert again[-1].data["status"] == "completed"


async def test_with_nothing_to_leave_out_the_error_comes_at_once(tmp_path: Path) -> None:
    provider = ScriptedProvider([Step(error=overflow())])
    events = await turn(engine_with(provider, tmp_path), "long " * 1000)
    assert types(events) == ["turn_start", "llm_request", "error", "turn_end"]
    error = one(events, "error")
    assert error.retriable
    assert "nothing older" in error.error
    assert provider.chat_requests == []


async def test_each_request_of_a_turn_may_be_rescued_once(tmp_path: Path) -> None:
    registry = registry_with({"grep": lambda args: "hit " * 300})
    call = Step("", tool_calls=[("grep", {})])
    provider = ScriptedProvider(
        [Step(error=overflow()), call, Step(error=overflow()), call, "done"], chat_replies=["notes"] * 2
    )
    engine = engine_with(provider, tmp_path, registry, messages=[system(), *talk(4)])
    events = await turn(engine)
    assert types(events).count("compacting") == 2
    assert events[-1].data["status"] == "completed"


async def test_results_that_overflow_by_themselves_are_shortened(tmp_path: Path) -> None:
    registry = registry_with({"grep": lambda args: "begin " + "x" * 20_000 + " end"})
    provider = ScriptedProvider([Step("", tool_calls=[("grep", {}), ("grep", {})]), Step(error=overflow()), "done"])
    engine = engine_with(provider, tmp_path, registry)
    events = await turn(engine)
    compacted = one(events, "compacted")
    assert (compacted.method, compacted.messages_before, compacted.messages_after) == ("trimmed", 5, 5)
    assert "boundaryIndex" not in compacted.data
    assert types(events).count("llm_request") == 3, "nothing was dropped, so there is nothing to summarise"
    shown = [m["content"] for m in provider.requests[2].messages if m["role"] == "tool"]
    assert all(text.startswith("begin") and text.endswith("end") and len(text) < 6000 for text in shown)
    assert events[-1].data["status"] == "completed"


async def test_a_summary_request_that_overflows_too_is_sent_with_half_of_the_record(tmp_path: Path) -> None:
    lengths: list[int] = []

    class Provider(ScriptedProvider):
        async def chat(self, model: str, messages: Any, *rest: Any, **params: Any) -> str | None:
            lengths.append(len(messages[1]["content"]))
            if len(lengths) == 1:
                raise overflow()
            return "notes"

    provider = Provider([Step(error=overflow()), "ok"])
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(40, 4000)])
    events = await turn(engine)
    assert one(events, "compacted").method == "summarized"
    # The true window is unknown: the first try is half of what was too much already.
    assert lengths[0] < 165_000
    assert lengths[1] < lengths[0] * 0.6


async def test_a_summary_request_that_always_overflows_ends_in_trimming(tmp_path: Path) -> None:
    class Provider(ScriptedProvider):
        asked = 0

        async def chat(self, *args: Any, **kwargs: Any) -> str | None:
            self.asked += 1
            raise overflow()

    provider = Provider([Step(error=overflow()), "ok"])
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(20)])
    events = await turn(engine)
    assert one(events, "compacted").method == "trimmed"
    assert provider.asked == 2
    assert events[-1].data["status"] == "completed"


async def test_pictures_of_the_turn_are_taken_out_although_messages_moved(tmp_path: Path) -> None:
    provider = ScriptedProvider([Step(error=overflow()), "seen"], chat_replies=["notes"])
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(4)])
    picture = {"name": "a.png", "mimeType": "image/png", "dataUrl": "data:image/png;base64,AAAA"}
    events = [event async for event in engine.run("what is this?", attachments=[picture])]
    assert one(events, "compacted").method == "summarized"
    assert "base64" in str(provider.requests[1].messages)
    assert "base64" not in str(engine.messages)


async def test_a_session_restored_in_the_middle_of_a_call_goes_on(tmp_path: Path) -> None:
    registry = registry_with({"grep": lambda args: "hit"})
    pending = called(9, "grep", "{}", "")[:1]
    messages = [system(), *talk(8), {"role": "user", "content": "search"}, *pending]
    provider = ScriptedProvider([Step(error=overflow()), "done"], chat_replies=["notes"])
    engine = engine_with(provider, tmp_path, registry, messages=messages)
    events = [event async for event in engine.resume()]
    assert events[-1].data["status"] == "completed"
    assert [m["role"] for m in engine.messages][-3:] == ["assistant", "tool", "assistant"]
    assert "search" in contents(engine.messages)
