"""The hard threshold: a summary takes the place of the older conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.engine_compaction.helpers import (
    INTRO,
    called,
    contents,
    engine_with,
    one,
    registry_with,
    system,
    talk,
    turn,
    types,
)
from zq_notebook.engine.hooks import EngineHook
from zq_notebook.engine.naming import suggest_session_name
from zq_notebook.errors import ApiStatusError, NetworkError, ProviderError
from zq_notebook.languages.catalog import PROMPT_LANGS, get_prompts
from zq_notebook.providers.scripted import ScriptedProvider, Step


async def test_events_and_history_at_the_threshold(tmp_path: Path) -> None:
    provider = ScriptedProvider(["done"], chat_replies=["  the notes  "])
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(4)], context_window=1000)
    events = await turn(engine, "and now?")
    assert types(events) == [
        "turn_start",
        "compacting",
        "llm_request",
        "compacted",
        "llm_request",
        "assistant_message",
        "iteration_end",
        "turn_end",
    ]
    compacting = one(events, "compacting").data
    assert 800 <= compacting.pop("tokens") <= 900
    assert compacting == {
        "taskId": "t1",
        "trigger": "threshold",
        "estimated": True,
        "contextWindow": 1000,
        "thresholdPct": 0.8,
        "thresholdTokens": 800,
        "outboundMessages": 10,
    }
    summary_request, request = (e for e in events if e.type == "llm_request")
    assert summary_request.data == {
        "reqId": summary_request.req_id,
        "taskId": "t1",
        "logTime": summary_request.log_time,
        "model": "m",
        "msgCount": 2,
        "toolCount": 0,
        "compact": True,
    }
    assert "compact" not in request.data
    assert one(events, "compacted").data == {
        "reqId": summary_request.req_id,
        "taskId": "t1",
        "method": "summarized",
        "messagesBefore": 10,
        "messagesAfter": 4,
        "boundaryIndex": 8,
        "model": "m",
        "summaryPreview": "the notes",
        "keptUserMessages": 1,
        "droppedUserMessages": 4,
    }
    sent = provider.requests[0].messages
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "user"]
    assert contents(sent)[:2] == ["Be brief.", f"{INTRO}\n\nthe notes"]
    assert contents(sent)[3] == "and now?"
    provider.assert_finished()


async def test_the_summary_is_asked_for_as_the_manual_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, ...]] = []

    class Provider(ScriptedProvider):
        async def chat(self, model: str, messages: Any, options: Any, opts: Any, params: Any = None) -> str | None:
            seen.append((model, options, opts.reasoning_effort, params, messages))
            return "notes"

    call = called(1, "grep", '{"pattern": "needle"}', "found in a.py")
    history = [system(), *talk(3, 4000), *call, *talk(1, 4000, start=3)]
    await turn(engine_with(Provider(["ok"]), tmp_path, messages=history, context_window=9500))
    model, options, effort, params, messages = seen[0]
    assert (model, options, effort, params) == ("m", {"reasoning_effort": "low"}, "low", {"max_tokens": 3000})
    assert [m["role"] for m in messages] == ["system", "user"]
    record = messages[1]["content"]
    for told in ("question 0", "answer 2", "grep", "needle", "found in a.py"):
        assert told in record
    assert "Be brief." not in record

    monkeypatch.setenv("COMPACTION_MODEL", "small-one")
    monkeypatch.setenv("COMPACTION_REASONING_EFFORT", "high")
    events = await turn(engine_with(Provider(["ok"]), tmp_path, messages=history, context_window=9500))
    assert seen[1][:3] == ("small-one", {"reasoning_effort": "high"}, "high")
    assert one(events, "compacted").model == "small-one"
    assert [e.model for e in events if e.type == "llm_request"] == ["small-one", "m"]


@pytest.mark.parametrize("lang", PROMPT_LANGS)
async def test_the_summary_is_in_the_language_of_the_session(lang: str, tmp_path: Path) -> None:
    words = get_prompts(lang).compaction
    provider = ScriptedProvider(["ok"], chat_replies=["notes"])
    history = [system(), *talk(4)]
    engine = engine_with(provider, tmp_path, messages=history, context_window=1000, lang=lang)
    await turn(engine)
    assert provider.chat_requests[0].messages[0]["content"] == words.prompt
    assert contents(engine.messages)[1] == f"{words.summary_intro}\n\nnotes"


async def test_below_the_thresholds_nothing_happens(tmp_path: Path) -> None:
    provider = ScriptedProvider(["ok"])
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(4)], context_window=2000)
    assert types(await turn(engine)) == ["turn_start", "llm_request", "assistant_message", "iteration_end", "turn_end"]
    assert engine.compaction_state.compactions == engine.compaction_state.evictions == 0


async def test_a_provider_without_chat_is_asked_by_a_stream_without_tools(tmp_path: Path) -> None:
    provider = ScriptedProvider(["streamed notes", "ok"])
    registry = registry_with({"grep": lambda args: "hit"})
    engine = engine_with(provider, tmp_path, registry, messages=[system(), *talk(4)], context_window=1000)
    events = await turn(engine)
    assert provider.requests[0].tools == []
    assert one(events, "compacted").summary_preview == "streamed notes"
    # The summary is not an answer: nothing of it is streamed to the user.
    assert "".join(e.text for e in events if e.type == "assistant_delta") == "ok"


async def test_a_stream_that_breaks_while_it_is_closed_does_not_cost_the_summary(tmp_path: Path) -> None:
    class Chunks:
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def __aiter__(self) -> Chunks:
            return self

        async def __anext__(self) -> Any:
            return await self._stream.__anext__()

        async def aclose(self) -> None:
            await self._stream.aclose()
            raise OSError("the connection is gone")

    class Provider(ScriptedProvider):
        def stream(self, *args: Any, **kwargs: Any) -> Any:
            return Chunks(super().stream(*args, **kwargs))

    provider = Provider(["streamed notes", "ok"])
    events = await turn(engine_with(provider, tmp_path, messages=[system(), *talk(4)], context_window=1000))
    assert one(events, "compacted").summary_preview == "streamed notes"


async def test_usage_that_the_server_reports_counts_more_than_the_estimate(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        [Step("one", usage={"prompt_tokens": 850, "completion_tokens": 10}), "two"], chat_replies=["notes"]
    )
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(1)], context_window=1000)
    assert "compacting" not in types(await turn(engine))
    compacting = one(await turn(engine), "compacting")
    assert not compacting.estimated
    assert 860 <= compacting.tokens <= 880


async def test_it_happens_between_iterations_of_one_turn_and_the_task_stays(tmp_path: Path) -> None:
    registry = registry_with({"grep": lambda args: "hit " * 200})
    steps = [Step("", tool_calls=[("grep", {"n": n})]) for n in range(12)]
    provider = ScriptedProvider([*steps, "done"], chat_replies=["notes"] * 12)
    engine = engine_with(provider, tmp_path, registry, context_window=1500, soft_threshold_pct=0.8)
    events = await turn(engine, "find all of it")
    assert types(events).count("compacted") >= 2
    assert {e.method for e in events if e.type == "compacted"} == {"summarized"}
    for request in provider.requests:
        assert "find all of it" in contents(request.messages)
        assert sum(len(str(m)) for m in request.messages) / 4 < 1500 * 1.2
    provider.assert_finished()


async def test_an_earlier_summary_becomes_part_of_the_next_one(tmp_path: Path) -> None:
    provider = ScriptedProvider(["ok"] * 2, chat_replies=["first notes", "second notes"])
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(4)], context_window=1000)
    await turn(engine)
    engine.messages += engine_with(provider, tmp_path, messages=talk(4)).messages[1:]
    await turn(engine)
    assert "first notes" in provider.chat_requests[1].messages[1]["content"]
    told = contents(engine.messages)
    assert [text for text in told if text.startswith(INTRO)] == [f"{INTRO}\n\nsecond notes"]


async def test_a_summary_is_never_longer_than_its_cap(tmp_path: Path) -> None:
    provider = ScriptedProvider(["ok"], chat_replies=["word " * 20_000])
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(40, 4000)], context_window=100_000)
    await turn(engine)
    assert 11_000 < len(contents(engine.messages)[1]) < 12_200


@pytest.mark.parametrize("failure", [ProviderError("no"), RuntimeError("bug")])
@pytest.mark.parametrize("window", [530, 600])
async def test_without_a_summary_the_oldest_exchanges_are_left_out(
    failure: Exception, window: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")

    class Provider(ScriptedProvider):
        async def chat(self, *args: Any, **kwargs: Any) -> str | None:
            raise failure

    engine = engine_with(Provider(["ok"]), tmp_path, messages=[system(), *talk(20, 40)], context_window=window)
    events = await turn(engine, "and now?")
    assert types(events)[1:5] == ["compacting", "llm_request", "compacted", "llm_request"]
    (warning,) = caplog.records
    assert "is left out: " + type(failure).__name__ in warning.getMessage()
    assert warning.exc_info is None, "without a handler the traceback would be printed into the user's cell"
    compacted = one(events, "compacted")
    assert compacted.method == "trimmed"
    assert "model" not in compacted.data
    assert "summaryPreview" not in compacted.data
    roles = [m["role"] for m in engine.messages]
    assert roles[:2] == ["system", "user"]
    assert "and now?" in contents(engine.messages)
    assert compacted.messages_after == len(engine.messages) - 1 < compacted.messages_before
    assert compacted.kept_user_messages + compacted.dropped_user_messages == 21


async def test_a_model_that_does_not_reason_is_asked_without_an_effort(tmp_path: Path) -> None:
    efforts: list[Any] = []

    class Provider(ScriptedProvider):
        async def chat(self, model: str, messages: Any, options: Any, opts: Any, params: Any = None) -> str | None:
            efforts.append((options, opts.reasoning_effort))
            if options or opts.reasoning_effort:
                raise ApiStatusError("Unrecognized argument: reasoning_effort", status=400)
            return "notes"

    engine = engine_with(Provider(["ok"]), tmp_path, messages=[system(), *talk(4)], context_window=1000)
    assert one(await turn(engine), "compacted").method == "summarized"
    assert efforts == [({"reasoning_effort": "low"}, "low"), (None, None)]
    assert await suggest_session_name(engine) == "notes"


async def test_a_network_that_comes_back_does_not_cost_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETWORK_RETRY_BASE_MS", "1")
    replies: list[Any] = [NetworkError("lost"), "notes"]

    class Provider(ScriptedProvider):
        async def chat(self, *args: Any, **kwargs: Any) -> str | None:
            reply = replies.pop(0)
            if isinstance(reply, Exception):
                raise reply
            return str(reply)

    engine = engine_with(Provider(["ok"]), tmp_path, messages=[system(), *talk(4)], context_window=1000)
    events = await turn(engine)
    assert types(events)[1:6] == ["compacting", "llm_request", "llm_retry", "llm_request", "compacted"]
    assert one(events, "compacted").method == "summarized"


async def test_prompt_and_tools_above_the_threshold_are_the_servers_decision(tmp_path: Path) -> None:
    provider = ScriptedProvider(["ok"] * 5, chat_replies=["notes"] * 9)
    messages = [system("rules " * 1000), *talk(3)]
    engine = engine_with(provider, tmp_path, messages=messages, context_window=1000)
    for _ in range(5):
        assert "compacting" not in types(await turn(engine))
    assert provider.chat_requests == []
    assert engine.compaction_state.tokens > 1000


async def test_what_the_user_says_alone_above_the_threshold_does_not_loop(tmp_path: Path) -> None:
    provider = ScriptedProvider(["ok"] * 3, chat_replies=["notes"] * 9)
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(2)], context_window=1000)
    events = await turn(engine, "long " * 2000)
    assert "compacting" not in types(events)
    assert contents(engine.messages)[-2] == "long " * 2000


async def test_a_summary_as_long_as_the_conversation_is_not_asked_for_again_and_again(tmp_path: Path) -> None:
    provider = ScriptedProvider(["ok"] * 4, chat_replies=["n" * 3000] * 9)
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(4)], context_window=1000)
    events = [event for _ in range(4) for event in await turn(engine, "x")]
    assert types(events).count("compacting") == 1


async def test_the_same_conversation_is_not_squeezed_twice(tmp_path: Path) -> None:
    provider = ScriptedProvider(["ok"] * 2, chat_replies=["n" * 500] * 9)
    messages = [system("rule " * 510), *talk(4, 160)]
    engine = engine_with(provider, tmp_path, messages=messages, context_window=1000)
    first, second = [await turn(engine, "x") for _ in range(2)]
    assert one(first, "compacted").method == "summarized"
    assert engine.compaction_state.tokens > 800, "one compaction was not enough"
    assert "compacting" not in types(second)


async def test_a_few_old_words_between_notes_and_a_long_question_are_not_worth_a_summary(tmp_path: Path) -> None:
    notes = {"role": "user", "content": f"{INTRO}\n\n".ljust(1200, "n")}
    provider = ScriptedProvider(["ok"], chat_replies=["notes"])
    engine = engine_with(provider, tmp_path, messages=[system(), notes, *talk(1, 40)], context_window=1000)
    assert "compacting" not in types(await turn(engine, "long " * 420))
    assert engine.compaction_state.tokens > 800


async def test_hooks_hear_of_it_and_state_can_be_observed(tmp_path: Path) -> None:
    heard: list[Any] = []

    class Hook(EngineHook):
        def on_compacting(self, info: Any) -> None:
            heard.append(info["trigger"])

        def on_compacted(self, text: str, info: Any) -> None:
            heard.append((text, info["method"]))

    provider = ScriptedProvider(["ok"], chat_replies=["the notes"])
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(4)], context_window=1000, hook=Hook())
    assert engine.compaction_state.compactions == 0
    await turn(engine)
    assert heard == ["threshold", ("the notes", "summarized")]
    state = engine.compaction_state.to_dict()
    assert 0 < state.pop("tokens") < 400
    assert state == {
        "estimated": True,
        "context_window": 1000,
        "threshold_tokens": 800,
        "soft_threshold_tokens": 600,
        "evictions": 0,
        "compactions": 1,
        "last_method": "summarized",
        "last_trigger": "threshold",
    }
    with pytest.raises(AttributeError):
        engine.compaction_state = None  # type: ignore[misc,assignment]


async def test_the_window_is_looked_up_once_for_each_model_and_not_for_small_requests(tmp_path: Path) -> None:
    asked: list[str] = []

    def window_of(model: str) -> int | None:
        asked.append(model)
        return {"a": 20_000}.get(model)

    engine = engine_with(ScriptedProvider(["ok"] * 4), tmp_path, model="a", window_of=window_of)
    await turn(engine, "short")
    assert asked == []
    await turn(engine, "long " * 8000)
    await turn(engine, "more")
    assert asked == ["a"]
    assert engine.compaction_state.context_window == 20_000
    engine.model = "unknown"
    await turn(engine, "more")
    assert asked == ["a", "unknown"]
    assert engine.compaction_state.context_window == 128_000


async def test_a_window_that_cannot_be_looked_up_is_taken_as_the_default(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(model: str) -> int | None:
        raise LookupError(model)

    caplog.set_level("INFO")
    engine = engine_with(ScriptedProvider(["ok"]), tmp_path, window_of=broken)
    await turn(engine, "long " * 8000)
    assert engine.compaction_state.context_window == 128_000
    assert "could not be looked up" in caplog.text
