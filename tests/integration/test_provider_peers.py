"""OpenAIProvider against independent servers: aimock on both APIs, and llmock doing its worst."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.integration.peers import StartAimock, StartLlmock, llmock_requests
from zq_notebook.engine.messages import Message, StreamChunk
from zq_notebook.engine.ports import StreamOptions
from zq_notebook.errors import ApiStatusError, ContextOverflowError, NetworkError, StreamError
from zq_notebook.providers.openai import OpenAIProvider

APIS = pytest.mark.parametrize("api", ["responses", "chat"])
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
MakeProvider = Callable[..., OpenAIProvider]


@pytest.fixture
async def make_provider() -> AsyncIterator[MakeProvider]:
    made: list[OpenAIProvider] = []

    def make(base_url: str, **fields: Any) -> OpenAIProvider:
        made.append(OpenAIProvider("test-key", base_url, **fields))
        return made[-1]

    yield make
    for provider in made:
        await provider.aclose()


def options() -> StreamOptions:
    return StreamOptions(req_id="r", log_time="2026-01-31T10:00:00Z")


async def ask(provider: OpenAIProvider, messages: list[Message], tools: Any = ()) -> list[StreamChunk]:
    return [chunk async for chunk in provider.stream("gpt-5", messages, tools, options())]


def text_of(chunks: list[StreamChunk]) -> str:
    return "".join(chunk.content or "" for chunk in chunks)


@APIS
async def test_aimock_text_reasoning_and_usage(
    start_aimock: StartAimock, make_provider: MakeProvider, api: str
) -> None:
    answer = {"content": "Grüße aus der Ferne, in mehreren Stücken. 🎉", "reasoning": "I think of words."}
    answer |= {"usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}}  # type: ignore[dict-item]
    base_url = start_aimock([{"match": {"userMessage": "greet me"}, "response": answer}])
    chunks = await ask(make_provider(base_url, api_mode=api), [Message(role="user", content="greet me")])
    assert text_of(chunks) == answer["content"]
    assert len([c for c in chunks if c.content]) > 1
    assert "".join(c.reasoning or "" for c in chunks) == answer["reasoning"]
    assert chunks[-1].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens > 0


@APIS
async def test_aimock_tool_loop(start_aimock: StartAimock, make_provider: MakeProvider, api: str) -> None:
    calls = [{"name": "get_weather", "arguments": {"city": city}, "id": f"call_{city}"} for city in ("Kyiv", "Oslo")]
    base_url = start_aimock(
        [
            {"match": {"toolCallId": "call_Oslo"}, "response": {"content": "Cold in both."}},
            {"match": {"userMessage": "weather"}, "response": {"toolCalls": calls}},
        ]
    )
    provider = make_provider(base_url, api_mode=api)
    messages = [Message(role="system", content="Be brief."), Message(role="user", content="weather?")]
    last = (await ask(provider, messages, [WEATHER]))[-1]
    assert last.finish_reason == "tool_calls"
    assert [(c.id, c.name) for c in last.tool_calls or ()] == [
        ("call_Kyiv", "get_weather"),
        ("call_Oslo", "get_weather"),
    ]
    made = last.tool_calls or []
    messages.append(
        Message(role="assistant", content="", tool_calls=[c.to_message() for c in made], **(last.extra or {}))
    )
    messages += [Message(role="tool", tool_call_id=c.id, content="-3 °C") for c in made]
    assert text_of(await ask(provider, messages, [WEATHER])) == "Cold in both."


async def test_aimock_small_request(start_aimock: StartAimock, make_provider: MakeProvider) -> None:
    base_url = start_aimock([{"match": {"userMessage": "name"}, "response": {"content": "A good name"}}])
    messages = [Message(role="user", content="name this")]
    assert await make_provider(base_url).chat("gpt-5", messages, None, options(), {"max_tokens": 30}) == "A good name"


@APIS
async def test_llmock_tool_call_then_text(start_llmock: StartLlmock, make_provider: MakeProvider, api: str) -> None:
    provider = make_provider(start_llmock(response_style="hello"), api_mode=api)
    messages = [Message(role="user", content="weather in Paris?")]
    last = (await ask(provider, messages, [WEATHER]))[-1]
    (call,) = last.tool_calls or ()
    messages.append(Message(role="assistant", content=None, tool_calls=[call.to_message()]))
    messages.append(Message(role="tool", tool_call_id=call.id, content="21 °C"))
    chunks = await ask(provider, messages, [WEATHER])
    assert text_of(chunks)
    assert chunks[-1].finish_reason == "stop"


@APIS
async def test_llmock_429_is_waited_for_as_the_server_asks(
    start_llmock: StartLlmock, make_provider: MakeProvider, api: str
) -> None:
    base_url = start_llmock({"type": "fail", "status": 429, "retry_after": 0.2, "times": 1}, tool_mode="off")
    assert text_of(await ask(make_provider(base_url, api_mode=api), [Message(role="user", content="hi")]))
    assert len(llmock_requests(base_url)) == 2


@APIS
@pytest.mark.parametrize("status", [429, 500])
async def test_llmock_lasting_failure_is_retriable(
    start_llmock: StartLlmock, make_provider: MakeProvider, api: str, status: int
) -> None:
    base_url = start_llmock({"type": "fail", "status": status, "times": None})
    with pytest.raises(ApiStatusError) as caught:
        await ask(make_provider(base_url, api_mode=api, max_retries=0), [Message(role="user", content="hi")])
    assert (caught.value.status, caught.value.retriable) == (status, True)


@APIS
@pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed", "stall"])
async def test_llmock_broken_stream_is_retriable(
    start_llmock: StartLlmock, make_provider: MakeProvider, api: str, kind: str
) -> None:
    fault: dict[str, Any] = {"type": "stream_fault", "kind": kind, "after_chunks": 2, "times": None}
    base_url = start_llmock(fault | ({"stall_seconds": 20} if kind == "stall" else {}), response_style="varied")
    provider = make_provider(base_url, api_mode=api, stream_idle_ms=300)
    with pytest.raises((StreamError, NetworkError)) as caught:
        await ask(provider, [Message(role="user", content="tell me a story")])
    assert caught.value.retriable


@APIS
async def test_llmock_context_overflow(start_llmock: StartLlmock, make_provider: MakeProvider, api: str) -> None:
    fault = {
        "type": "fail",
        "status": 400,
        "message": "This model's maximum context length is 10 tokens",
        "times": None,
    }
    base_url = start_llmock(fault)
    with pytest.raises(ContextOverflowError):
        await ask(make_provider(base_url, api_mode=api), [Message(role="user", content="hi")])


async def test_llmock_404_on_responses_goes_to_chat_for_good(
    start_llmock: StartLlmock, make_provider: MakeProvider
) -> None:
    base_url = start_llmock({"type": "fail", "status": 404, "times": 1, "match": {"path": "*/responses"}})
    provider = make_provider(base_url)
    for _ in range(2):
        assert text_of(await ask(provider, [Message(role="user", content="hi")]))
    paths = [request["path"].rsplit("/", 1)[1] for request in llmock_requests(base_url)]
    assert paths == ["responses", "completions", "completions"]
