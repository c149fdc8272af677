"""The whole engine against independent servers: aimock on both APIs, and llmock doing its worst."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.integration.peers import StartAimock, StartLlmock, llmock_requests
from tests.unit.engine.play import check_turn, drain, make_engine, of_type, play, results, statuses, types
from zq_notebook.engine.turn import TurnEngine
from zq_notebook.errors import ApiStatusError, NetworkError
from zq_notebook.providers.openai import OpenAIProvider

APIS = pytest.mark.parametrize("api", ["responses", "chat"])
EngineOn = Callable[..., TurnEngine]


@pytest.fixture
async def engine_on(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EngineOn]:
    """Make an engine that talks to a server; retries wait for a millisecond."""
    monkeypatch.setenv("NETWORK_RETRY_BASE_MS", "1")
    made: list[OpenAIProvider] = []

    def make(base_url: str, api: str, provider_options: dict[str, Any] | None = None, **options: Any) -> TurnEngine:
        made.append(OpenAIProvider("test-key", base_url, api_mode=api, max_retries=0, **(provider_options or {})))
        engine = make_engine(made[-1], **options)
        engine.model = "gpt-5"
        return engine

    yield make
    for provider in made:
        await provider.aclose()


@APIS
async def test_text_reasoning_and_usage(start_aimock: StartAimock, engine_on: EngineOn, api: str) -> None:
    answer = {"content": "Grüße aus der Ferne, in mehreren Stücken. 🎉", "reasoning": "I think of words."}
    usage = {"usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}}
    base_url = start_aimock([{"match": {"userMessage": "greet me"}, "response": answer | usage}])
    engine = engine_on(base_url, api)
    events = await play(engine, "greet me")
    assert types(events) == [
        "turn_start",
        "llm_request",
        "reasoning_delta",
        "assistant_delta",
        "assistant_message",
        "iteration_end",
        "turn_end",
    ]
    message = of_type(events, "assistant_message")[0].data
    assert message["text"] == answer["content"] == engine.messages[-1]["content"]
    assert message["reasoning"] == answer["reasoning"]
    assert message["usage"]["total_tokens"] > 0
    assert "".join(event.data["text"] for event in of_type(events, "assistant_delta")) == answer["content"]


@APIS
async def test_a_loop_of_tools_with_approval(start_aimock: StartAimock, engine_on: EngineOn, api: str) -> None:
    def asks(*calls: tuple[str, str, Any]) -> dict[str, Any]:
        return {"toolCalls": [{"id": i, "name": name, "arguments": arguments} for i, name, arguments in calls]}

    base_url = start_aimock(
        [
            {"match": {"toolCallId": "c3"}, "response": {"content": "All done."}},
            {"match": {"toolCallId": "c2"}, "response": asks(("c3", "act", {"n": 3}))},
            {"match": {"userMessage": "work"}, "response": asks(("c1", "look", {"n": 1}), ("c2", "look", {"n": 2}))},
        ]
    )
    asked: list[Any] = []
    engine = engine_on(
        base_url,
        api,
        low={"look": lambda args: f"looked at {args['n']}"},
        high={"act": lambda args: "acted"},
        approver=lambda request: asked.append(request.arguments) or "once",
    )
    events = await play(engine, "work")
    assert events[-1].data["status"] == "completed"
    assert events[-1].data["iterations"] == 3
    assert statuses(events) == ["ok", "ok", "ok"]
    assert results(engine) == ["looked at 1", "looked at 2", "acted"]
    assert asked == [{"n": 3}]
    assert engine.messages[-1]["content"] == "All done."


@APIS
@pytest.mark.parametrize("status", [429, 500])
async def test_a_lasting_error_status_ends_the_turn_and_can_be_retried(
    start_llmock: StartLlmock, engine_on: EngineOn, api: str, status: int
) -> None:
    base_url = start_llmock({"type": "fail", "status": status, "times": 1}, tool_mode="off")
    engine = engine_on(base_url, api)
    events = await play(engine, "hi")
    error = of_type(events, "error")[0].data
    assert (error["error_type"], error["retriable"]) == (ApiStatusError.__name__, True)
    assert of_type(events, "llm_retry") == []
    assert types(events)[-2:] == ["error", "turn_end"]
    assert [message["role"] for message in engine.messages] == ["system", "user"]
    events = await drain(engine.retry())
    check_turn(events, engine)
    assert events[-1].data["status"] == "completed"
    assert engine.messages[-1]["content"]


@APIS
@pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed", "stall"])
async def test_a_broken_stream_is_announced_and_tried_again(
    start_llmock: StartLlmock, engine_on: EngineOn, api: str, kind: str
) -> None:
    fault: dict[str, Any] = {"type": "stream_fault", "kind": kind, "after_chunks": 2, "times": 1}
    base_url = start_llmock(fault | ({"stall_seconds": 20} if kind == "stall" else {}), tool_mode="off")
    engine = engine_on(base_url, api, {"stream_idle_ms": 300})
    events = await play(engine, "tell me a story")
    (retry,) = of_type(events, "llm_retry")
    assert (retry.data["attempt"], retry.data["max"]) == (1, 2)
    first, second = of_type(events, "llm_request")
    assert retry.data["reqId"] == first.data["reqId"] != second.data["reqId"]
    assert events[-1].data["status"] == "completed"
    assert engine.messages[-1]["content"] == of_type(events, "assistant_message")[0].data["text"]
    assert len(llmock_requests(base_url)) == 2


@APIS
@pytest.mark.parametrize("kind", ["disconnect", "truncate"])
async def test_a_stream_that_breaks_every_time_ends_the_turn(
    start_llmock: StartLlmock, engine_on: EngineOn, api: str, kind: str
) -> None:
    fault = {"type": "stream_fault", "kind": kind, "after_chunks": 2, "times": None}
    base_url = start_llmock(fault, tool_mode="off")
    engine = engine_on(base_url, api)
    events = await play(engine, "tell me a story")
    assert len(of_type(events, "llm_retry")) == 2
    assert of_type(events, "error")[0].data["retriable"] is True
    assert events[-1].data["status"] == "error"
    assert [message["role"] for message in engine.messages] == ["system", "user"]
    assert len(llmock_requests(base_url)) == 3


@APIS
async def test_stopped_while_the_server_is_silent(start_llmock: StartLlmock, engine_on: EngineOn, api: str) -> None:
    fault = {"type": "stream_fault", "kind": "stall", "after_chunks": 2, "stall_seconds": 60, "times": None}
    engine = engine_on(start_llmock(fault, tool_mode="off"), api)
    loop = asyncio.get_running_loop()
    events = []
    async for event in engine.run("tell me a story"):
        events.append(event)
        if event.type == "llm_request":
            loop.call_later(0.3, engine.request_interrupt)
    check_turn(events, engine)
    assert events[-1].data["status"] == "interrupted"
    assert of_type(events, "llm_retry") == []


async def test_a_server_that_is_not_there(engine_on: EngineOn) -> None:
    engine = engine_on("http://127.0.0.1:1/v1", "chat")
    events = await play(engine, "hi")
    error = of_type(events, "error")[0].data
    assert (error["error_type"], error["retriable"]) == (NetworkError.__name__, True)
    assert "127.0.0.1:1" in error["error"]
    assert len(of_type(events, "llm_retry")) == 2
