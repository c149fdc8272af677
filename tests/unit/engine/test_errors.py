"""What the provider raises: retried, announced, reported; retry() and resume() (Manual §9.4, §12.3, §12.4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.engine.play import (
    Chunks,
    check_turn,
    drain,
    make_engine,
    of_type,
    play,
    results,
    statuses,
    types,
    wire,
)
from zq_notebook.engine.messages import StreamChunk, ToolCall
from zq_notebook.errors import (
    ApiKeyMissingError,
    ApiStatusError,
    NetworkError,
    ProviderError,
    ScriptError,
    StreamError,
)
from zq_notebook.providers.scripted import ScriptedProvider, Step

LOOK = ToolCall("c1", "look", "{}").to_message()
PNG = {"name": "a.png", "mimeType": "image/png", "dataUrl": "data:image/png;base64,AAAA"}


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWORK_RETRY_BASE_MS", "1")


@pytest.mark.parametrize(
    ("error", "retriable", "requests"),
    [
        (ApiKeyMissingError(), False, 1),
        (ApiStatusError("bad key", status=401), False, 1),
        (ApiStatusError("slow down", status=429), True, 1),
        (ApiStatusError("oops", status=503), True, 1),
        (ProviderError("odd"), False, 1),
        (ProviderError("odd", retriable=True), True, 1),
        (NetworkError("lost"), True, 3),
        (StreamError("cut"), True, 3),
        (ConnectionResetError("reset"), True, 3),
        (TimeoutError("late"), True, 3),
        (ValueError("bug"), False, 1),
        (ScriptError("script"), False, 1),
    ],
)
async def test_each_kind_of_error(error: Exception, retriable: bool, requests: int) -> None:
    provider = ScriptedProvider([Step("some text", error=error)] * 3)
    engine = make_engine(provider)
    events = await play(engine, task_id="T")
    data = of_type(events, "error")[0].data
    assert data["error"] == str(error)
    assert data["error_type"] == type(error).__name__
    assert data["retriable"] is retriable
    assert data["iteration"] == 1
    assert data["reqId"] == of_type(events, "llm_request")[-1].data["reqId"]
    assert ("stack" in data) is not isinstance(error, (ProviderError, ScriptError))
    assert types(events)[-2:] == ["error", "turn_end"]
    assert events[-1].data["status"] == "error"
    assert len(provider.requests) == requests
    assert [message["role"] for message in engine.messages] == ["system", "user"]


async def test_retries_are_announced_with_their_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWORK_RETRY_MAX", "3")
    engine = make_engine([Step("par", error=NetworkError("lost"))] * 3 + ["whole"])
    seen = wire(await play(engine, task_id="T"))
    retries = [data for kind, data in seen if kind == "llm_retry"]
    assert retries == [
        {"attempt": n, "max": 3, "reason": "lost", "waitMs": 2 ** (n - 1), "iteration": 1, "reqId": f"R{n}"}
        for n in (1, 2, 3)
    ]
    assert [kind for kind, _ in seen][:5] == [
        "turn_start",
        "llm_request",
        "assistant_delta",
        "llm_retry",
        "llm_request",
    ]
    assert engine.messages[-1] == {"role": "assistant", "content": "whole"}


@pytest.mark.parametrize(("value", "tries"), [("0", 1), ("1", 2), ("-3", 1), ("many", 3), ("", 3)])
async def test_number_of_retries_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, value: str, tries: int
) -> None:
    monkeypatch.setenv("NETWORK_RETRY_MAX", value)
    provider = ScriptedProvider([Step(error=NetworkError("lost"))] * 5)
    await play(make_engine(provider))
    assert len(provider.requests) == tries


@pytest.mark.parametrize(
    "chunks",
    [
        [],
        [StreamChunk(content="half a sen")],
        [StreamChunk(reasoning="hm")],
        [StreamChunk(finish_reason="stop"), StreamChunk(content="and more")],
        [StreamChunk(tool_calls=[])],
    ],
)
async def test_stream_cut_before_finish_reason_is_retriable(chunks: list[StreamChunk]) -> None:
    engine = make_engine(Chunks(chunks, chunks, chunks))
    events = await play(engine)
    assert of_type(events, "error")[0].data["error_type"] == "StreamError"
    assert len(of_type(events, "llm_retry")) == 2
    assert engine.retriable
    assert engine.messages[-1]["role"] == "user"


async def test_calls_of_a_cut_stream_are_not_run() -> None:
    call = ToolCall("c", "look", "{}")
    cut = [StreamChunk(tool_calls=[call]), StreamChunk(content="x")]
    whole = [StreamChunk(content="ok", finish_reason="stop")]
    ran: list[Any] = []
    await play(make_engine(Chunks(cut, whole), low={"look": ran.append}))
    assert ran == []


async def test_finish_reason_stop_with_calls_runs_them() -> None:
    first = [StreamChunk(tool_calls=[ToolCall("c", "look", "{}")], finish_reason="stop")]
    engine = make_engine(
        Chunks(first, [StreamChunk(content="ok", finish_reason="stop")]), low={"look": lambda a: "ran"}
    )
    await play(engine)
    assert results(engine) == ["ran"]


async def test_a_provider_that_is_cancelled_from_within_is_an_error_and_not_a_cancellation() -> None:
    engine = make_engine([Step("a", error=asyncio.CancelledError())] * 2 + ["whole"])
    events = await play(engine)
    assert len(of_type(events, "llm_retry")) == 2
    assert "cancelled from within" in of_type(events, "llm_retry")[0].data["reason"]
    assert events[-1].data["status"] == "completed"


async def test_a_provider_that_is_no_provider() -> None:
    class Nothing:
        def stream(self, *args: Any) -> Any:
            return None

        async def chat(self, *args: Any) -> str | None:
            return None

    events = await play(make_engine(Nothing()))
    assert events[-1].data["status"] == "error"
    assert of_type(events, "error")[0].data["error_type"] in ("AttributeError", "TypeError")


async def test_retry_goes_on_from_where_the_turn_failed() -> None:
    steps = [Step("", tool_calls=[("look", {})]), Step("x", error=ApiStatusError("busy", status=503)), "answer"]
    provider = ScriptedProvider(steps)
    engine = make_engine(provider, low={"look": lambda args: "seen"})
    await play(engine, "question")
    before = list(engine.messages)
    events = await drain(engine.retry(task_id="again"))
    check_turn(events, engine)
    assert events[0].data == {"taskId": "again", "input": "question"}
    assert events[-1].data["status"] == "completed"
    assert engine.messages[:-1] == before
    assert provider.requests[2].messages == provider.requests[1].messages


async def test_retry_sends_the_pictures_of_the_failed_turn_again() -> None:
    provider = ScriptedProvider([Step(error=ApiStatusError("busy", status=503)), "seen", "next"])
    engine = make_engine(provider)
    await play(engine, "what is it?", attachments=[PNG])
    await drain(engine.retry())
    assert "base64" in str(provider.requests[1].messages)
    assert "base64" not in str(engine.messages)


async def test_pictures_of_a_failed_turn_do_not_come_with_another_question() -> None:
    provider = ScriptedProvider([Step(error=ApiStatusError("busy", status=503)), "fine"])
    engine = make_engine(provider)
    await play(engine, "what is it?", attachments=[PNG])
    await play(engine, "something else")
    assert "base64" not in str(provider.requests[1].messages)


async def test_retry_only_after_a_retriable_error() -> None:
    engine = make_engine(["fine", Step(error=ValueError("bug")), Step(error=NetworkError("x")), "ok", "more"])
    monkey = pytest.MonkeyPatch()
    monkey.setenv("NETWORK_RETRY_MAX", "0")
    assert await drain(engine.retry()) == []
    await play(engine)
    assert await drain(engine.retry()) == []
    await play(engine)
    assert await drain(engine.retry()) == []
    await play(engine)
    assert len(await drain(engine.retry())) > 0
    assert await drain(engine.retry()) == []
    monkey.undo()


async def test_retry_not_after_a_stop() -> None:
    engine = make_engine(["one two"])
    async for event in engine.run("go"):
        if event.type == "assistant_delta":
            engine.request_interrupt()
    assert await drain(engine.retry()) == []


async def test_a_retry_that_fails_can_be_retried() -> None:
    busy = Step(error=ApiStatusError("busy", status=503))
    engine = make_engine([busy, busy, "ok"])
    await play(engine)
    assert (await drain(engine.retry()))[-1].data["status"] == "error"
    assert (await drain(engine.retry()))[-1].data["status"] == "completed"


def pending_history(*calls: dict[str, Any], answered: dict[str, str] | None = None) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "do it"},
        {"role": "assistant", "content": "", "tool_calls": list(calls)},
        *({"role": "tool", "tool_call_id": i, "content": text} for i, text in (answered or {}).items()),
    ]


def call(call_id: str, name: str) -> dict[str, Any]:
    return ToolCall(call_id, name, "{}").to_message()


async def test_resume_runs_the_pending_call_and_goes_on() -> None:
    asked: list[str] = []
    engine = make_engine(
        [Step("done", expect="acted")], high={"act": lambda args: "acted"}, messages=pending_history(call("c1", "act"))
    )
    engine.set_approver(lambda request: asked.append(request.tool_call_id) or "once")  # type: ignore[func-returns-value]
    events = await drain(engine.resume(task_id="T"))
    check_turn(events, engine)
    assert types(events) == [
        "turn_start",
        "tool_proposed",
        "permission_required",
        "tool_started",
        "tool_finished",
        "llm_request",
        "assistant_delta",
        "assistant_message",
        "iteration_end",
        "turn_end",
    ]
    assert events[0].data == {"taskId": "T", "input": "do it"}
    assert asked == ["c1"]


async def test_resume_keeps_the_results_that_are_there_and_the_order() -> None:
    calls = [call("a", "look"), call("b", "act"), call("c", "look")]
    for answered, ran in (({"a": "old a"}, 2), ({"c": "old c"}, 2), ({"a": "old a", "c": "old c"}, 1), ({}, 3)):
        log: list[str] = []
        engine = make_engine(
            ["done"],
            low={"look": lambda args, log=log: log.append("look") or "new"},
            high={"act": lambda args, log=log: log.append("act") or "acted"},
            approver=lambda request: "once",
            messages=pending_history(*calls, answered=answered),
        )
        events = await drain(engine.resume())
        check_turn(events, engine)
        assert len(log) == ran
        assert results(engine) == [answered.get("a", "new"), "acted", answered.get("c", "new")]


async def test_resume_without_pending_calls_does_nothing() -> None:
    done = [*pending_history(call("a", "look"), answered={"a": "x"}), {"role": "assistant", "content": "k"}]
    for messages in ([], done, done[:3], done[:1]):
        engine = make_engine([], messages=messages)
        before = list(engine.messages)
        assert await drain(engine.resume()) == []
        assert engine.messages == before


async def test_a_new_turn_on_pending_calls_answers_them_as_interrupted() -> None:
    provider = ScriptedProvider(["ok"])
    engine = make_engine(provider, messages=pending_history(call("a", "look"), call("b", "look"), answered={"b": "B"}))
    await play(engine, "never mind")
    contents = [m["content"] for m in provider.requests[0].messages if m["role"] == "tool"]
    assert contents == ["Interrupted by the user before it finished. It may have had part of its effect.", "B"]


async def test_resume_that_is_stopped_leaves_a_valid_history() -> None:
    engine = make_engine(["never"], high={"act": str}, messages=pending_history(call("a", "act"), call("b", "act")))
    engine.set_approver(lambda request: engine.request_interrupt() or "once")  # type: ignore[func-returns-value]
    events = await drain(engine.resume())
    check_turn(events, engine)
    assert statuses(events) == ["interrupted", "interrupted"]
    assert await drain(engine.resume()) == []
