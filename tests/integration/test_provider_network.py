"""OpenAIProvider against a server that does whatever the test says."""

from __future__ import annotations

import asyncio
import json
import stat
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.raw_server import SSE, Answer, RawServer, json_answer
from tests.unit.providers.sse_bytes import data, delta, named
from zq_notebook.engine.messages import StreamChunk, ToolCall
from zq_notebook.engine.ports import StreamOptions
from zq_notebook.errors import (
    ApiKeyMissingError,
    ApiStatusError,
    ContextOverflowError,
    NetworkError,
    StreamError,
    UsageError,
)
from zq_notebook.providers.openai import OpenAIProvider

KEY = "sk-test-0123456789abcdef"
CHAT_OK = Answer([data(delta(content="from chat"), delta("stop"), "[DONE]")])
DONE = {"type": "response.completed", "response": {"object": "response", "status": "completed"}}
RESPONSES_OK = Answer([named({"type": "response.output_text.delta", "delta": "from responses"}, DONE)])
NOT_FOUND = json_answer({"error": {"message": "Not Found"}}, 404)
COMPLAINT = json_answer({"error": {"message": "Unknown parameter: 'store'", "param": "store"}}, 400)


def options(**fields: Any) -> StreamOptions:
    return StreamOptions(req_id=fields.pop("req_id", "req-1"), log_time="2026-01-31T10:00:00Z", **fields)


@pytest.fixture
async def provider(raw_server: RawServer) -> AsyncIterator[OpenAIProvider]:
    made = OpenAIProvider(KEY, raw_server.base_url, max_retries=0)
    yield made
    await made.aclose()


async def ask(provider: OpenAIProvider, model: str = "m", opts: StreamOptions | None = None) -> list[StreamChunk]:
    messages = [{"role": "user", "content": "hi"}]
    return [chunk async for chunk in provider.stream(model, messages, [], opts or options())]


async def text_of(provider: OpenAIProvider, model: str = "m") -> str:
    return "".join(chunk.content or "" for chunk in await ask(provider, model))


# Which API


async def test_responses_come_first(raw_server: RawServer, provider: OpenAIProvider) -> None:
    raw_server.answers = [RESPONSES_OK]
    assert await text_of(provider) == "from responses"
    request = raw_server.requests[0]
    assert request.path == "/v1/responses"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.body["input"] == [{"type": "message", "role": "user", "content": "hi"}]


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_missing_endpoint_is_remembered_for_the_model(
    raw_server: RawServer, provider: OpenAIProvider, status: int
) -> None:
    raw_server.answers = [json_answer({"detail": "no"}, status), CHAT_OK, CHAT_OK, RESPONSES_OK]
    assert [await text_of(provider), await text_of(provider), await text_of(provider, "other")] == [
        *["from chat"] * 2,
        "from responses",
    ]
    assert [p.rsplit("/", 1)[1] for p in raw_server.paths] == ["responses", "completions", "completions", "responses"]


async def test_parameter_complaint_concerns_one_request(raw_server: RawServer, provider: OpenAIProvider) -> None:
    raw_server.answers = [COMPLAINT, CHAT_OK, RESPONSES_OK]
    assert [await text_of(provider), await text_of(provider)] == ["from chat", "from responses"]


async def test_refused_optional_field_is_not_sent_again(raw_server: RawServer, provider: OpenAIProvider) -> None:
    refusal = json_answer({"error": {"message": "verify your organization", "param": "reasoning.summary"}}, 400)
    raw_server.answers = [refusal, CHAT_OK, RESPONSES_OK]
    await text_of(provider, "gpt-5")
    assert await text_of(provider, "gpt-5") == "from responses"
    assert raw_server.requests[0].body["reasoning"] == {"summary": "auto"}
    assert "reasoning" not in raw_server.requests[2].body


async def test_chat_without_stream_options_when_they_are_refused(raw_server: RawServer) -> None:
    raw_server.answers = [json_answer({"message": "Extra inputs are not permitted: stream_options"}, 422), CHAT_OK]
    provider = OpenAIProvider(KEY, raw_server.base_url, api_mode="chat")
    assert await text_of(provider) == "from chat"
    assert [("stream_options" in r.body) for r in raw_server.requests] == [True, False]
    await provider.aclose()


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
async def test_other_errors_are_raised_without_trying_chat(
    raw_server: RawServer, provider: OpenAIProvider, status: int
) -> None:
    raw_server.answers = [json_answer({"error": {"message": f"no {KEY}", "code": "some_code"}}, status)]
    with pytest.raises(ApiStatusError) as caught:
        await ask(provider)
    assert (caught.value.status, caught.value.code) == (status, "some_code")
    assert caught.value.retriable is (status in (429, 500, 503))
    assert KEY not in str(caught.value)
    assert len(raw_server.requests) == 1


async def test_model_that_only_responses_knows_gets_the_error_of_responses(
    raw_server: RawServer, provider: OpenAIProvider
) -> None:
    raw_server.answers = [COMPLAINT, json_answer({"error": {"message": "This is not a chat model"}}, 404)]
    with pytest.raises(ApiStatusError, match="Unknown parameter: 'store'"):
        await ask(provider)


async def test_neither_endpoint_says_to_check_the_address(raw_server: RawServer, provider: OpenAIProvider) -> None:
    raw_server.answers = [NOT_FOUND]
    with pytest.raises(ApiStatusError, match="OPENAI_BASE_URL"):
        await ask(provider)
    assert len(raw_server.requests) == 2


@pytest.mark.parametrize("mode", ["responses", "chat"])
async def test_forced_mode_never_falls_back(raw_server: RawServer, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("OPENAI_FORCE_API_MODE", mode)
    raw_server.answers = [NOT_FOUND]
    provider = OpenAIProvider(KEY, raw_server.base_url)
    with pytest.raises(ApiStatusError):
        await ask(provider)
    assert len(raw_server.requests) == 1
    assert ("responses" in raw_server.paths[0]) is (mode == "responses")
    await provider.aclose()


async def test_context_overflow(raw_server: RawServer, provider: OpenAIProvider) -> None:
    raw_server.answers = [json_answer({"error": {"message": "x", "code": "context_length_exceeded"}}, 400)]
    with pytest.raises(ContextOverflowError):
        await ask(provider)
    assert len(raw_server.requests) == 1


# Retries, keys, environment


async def test_sdk_retries_429_as_often_as_the_environment_says(
    raw_server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_MAX_RETRIES", "1")
    limited = json_answer({"error": {"message": "slow"}}, 429, **{"retry-after-ms": "1"})
    provider = OpenAIProvider(KEY, raw_server.base_url)
    raw_server.answers = [limited, RESPONSES_OK]
    assert await text_of(provider) == "from responses"
    raw_server.answers = [limited]
    with pytest.raises(ApiStatusError):
        await ask(provider)
    assert len(raw_server.requests) == 4
    await provider.aclose()


async def test_lost_connection_is_left_to_the_engine_to_retry(raw_server: RawServer) -> None:
    provider = OpenAIProvider(KEY, raw_server.base_url, max_retries=5)
    raw_server.answers = [Answer(cut=True)]
    with pytest.raises(NetworkError) as caught:
        await ask(provider)
    assert caught.value.retriable
    assert raw_server.connections == 1
    await provider.aclose()


async def test_unreachable_server() -> None:
    provider = OpenAIProvider(KEY, "http://127.0.0.1:9/v1")
    with pytest.raises(NetworkError, match=r"Could not reach 127\.0\.0\.1:9 .* running"):
        await ask(provider)
    await provider.aclose()


async def test_server_that_does_not_answer_in_time(raw_server: RawServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_TIMEOUT_MS", "50")
    never = asyncio.Event()

    raw_server.answers = [Answer()]

    async def wait_for_ever(*args: Any) -> bool:
        await never.wait()
        return False

    monkeypatch.setattr(raw_server, "_send", wait_for_ever)
    provider = OpenAIProvider(KEY, raw_server.base_url)
    with pytest.raises(NetworkError, match="did not answer in time"):
        await ask(provider)
    never.set()
    await provider.aclose()


async def test_missing_key_is_said_at_the_first_request_and_not_needed_at_home(raw_server: RawServer) -> None:
    with pytest.raises(ApiKeyMissingError, match="OPENAI_API_KEY is not set"):
        await ask(OpenAIProvider())
    raw_server.answers = [RESPONSES_OK]
    provider = OpenAIProvider(base_url=raw_server.base_url)
    assert await text_of(provider) == "from responses"
    await provider.aclose()


async def test_key_set_later_is_used(raw_server: RawServer, monkeypatch: pytest.MonkeyPatch) -> None:
    raw_server.answers = [RESPONSES_OK]
    monkeypatch.setenv("OPENAI_BASE_URL", raw_server.base_url)
    provider = OpenAIProvider()
    await ask(provider)
    monkeypatch.setenv("OPENAI_API_KEY", "k-second")
    monkeypatch.setenv("OPENAI_REASONING_EFFORT", "low")
    await ask(provider)
    assert raw_server.requests[1].headers["authorization"] == "Bearer k-second"
    assert raw_server.requests[1].body["reasoning"]["effort"] == "low"
    await provider.aclose()


async def test_proxy_of_the_environment_is_used(raw_server: RawServer, monkeypatch: pytest.MonkeyPatch) -> None:
    raw_server.answers = [RESPONSES_OK]
    monkeypatch.setenv("HTTP_PROXY", raw_server.base_url.removesuffix("/v1"))
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")
    provider = OpenAIProvider(KEY, "http://model.test/v1")
    assert await text_of(provider) == "from responses"
    assert raw_server.requests[0].path == "http://model.test/v1/responses"
    await provider.aclose()


async def test_socks_proxy_gets_one_clear_paragraph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks9://127.0.0.1:1")
    with pytest.raises(UsageError, match="proxy settings"):
        await ask(OpenAIProvider(KEY, "http://model.test/v1"))


# Streams


@pytest.mark.parametrize("mode", ["chat", "responses"])
@pytest.mark.parametrize("trouble", ["truncated", "disconnected", "malformed"])
async def test_broken_streams_are_our_retriable_errors(raw_server: RawServer, mode: str, trouble: str) -> None:
    start = (
        data(delta(content="half"))
        if mode == "chat"
        else named({"type": "response.output_text.delta", "delta": "half"})
    )
    raw_server.answers = {
        "truncated": [Answer([start])],
        "disconnected": [Answer([start], cut=True)],
        "malformed": [Answer([start, b"data: {oops\n\n", data("[DONE]")])],
    }[trouble]
    provider = OpenAIProvider(KEY, raw_server.base_url, api_mode=mode)
    stream = provider.stream("m", [], [], options())
    assert (await anext(stream)).content == "half"
    with pytest.raises(StreamError) as caught:
        await anext(stream)
    assert caught.value.retriable
    await provider.aclose()


async def test_connection_lost_after_the_finish_reason_costs_nothing(raw_server: RawServer) -> None:
    raw_server.answers = [Answer([data(delta("stop", content="all"))], cut=True)]
    provider = OpenAIProvider(KEY, raw_server.base_url, api_mode="chat")
    assert await ask(provider) == [StreamChunk(content="all"), StreamChunk(finish_reason="stop")]
    await provider.aclose()


async def test_silent_stream_is_given_up(raw_server: RawServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_STREAM_IDLE_MS", "80")
    raw_server.answers = [Answer([data(delta(content="a")), asyncio.Event()])]
    provider = OpenAIProvider(KEY, raw_server.base_url, api_mode="chat")
    started = time.monotonic()
    with pytest.raises(StreamError, match="fell silent") as caught:
        await ask(provider)
    assert caught.value.retriable
    assert 0.05 < time.monotonic() - started < 5
    await asyncio.wait_for(raw_server.disconnected.wait(), 5)
    await provider.aclose()


async def test_slow_consumer_is_not_taken_for_a_silent_stream(raw_server: RawServer) -> None:
    raw_server.answers = [Answer([data(delta(content="a")), data(delta("stop", content="b"), "[DONE]")])]
    provider = OpenAIProvider(KEY, raw_server.base_url, api_mode="chat", stream_idle_ms=50)
    seen = []
    async for chunk in provider.stream("m", [], [], options()):
        seen.append(chunk.content)
        await asyncio.sleep(0.15)
    assert seen == ["a", "b", None]
    await provider.aclose()


async def test_cancelled_task_closes_the_connection_at_once(raw_server: RawServer, provider: OpenAIProvider) -> None:
    got_first = asyncio.Event()
    raw_server.answers = [Answer([named({"type": "response.output_text.delta", "delta": "a"}), asyncio.Event()])]

    async def read() -> None:
        async for _ in provider.stream("m", [], [], options()):
            got_first.set()

    task = asyncio.ensure_future(read())
    await asyncio.wait_for(got_first.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(raw_server.disconnected.wait(), 2)


@pytest.mark.parametrize("when", ["before the answer", "in the stream"])
async def test_cancel_token_ends_the_stream_quietly(
    raw_server: RawServer, provider: OpenAIProvider, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    opts = options()
    body = [named({"type": "response.output_text.delta", "delta": "a"})] if when == "in the stream" else []
    raw_server.answers = [Answer([*body, asyncio.Event()])]
    chunks: list[StreamChunk] = []

    async def read() -> None:
        async for chunk in provider.stream("m", [], [], opts):
            chunks.append(chunk)
            await asyncio.to_thread(opts.cancel.set)

    task = asyncio.ensure_future(read())
    await asyncio.wait_for(raw_server.arrived.wait(), 5)
    if when == "before the answer":
        await asyncio.to_thread(opts.cancel.set)
    await asyncio.wait_for(task, 5)
    assert [c.content for c in chunks] == ["a"] * len(body)
    await asyncio.wait_for(raw_server.disconnected.wait(), 2)


async def test_closing_the_iterator_closes_the_connection(raw_server: RawServer, provider: OpenAIProvider) -> None:
    raw_server.answers = [Answer([named({"type": "response.output_text.delta", "delta": "a"}), asyncio.Event()])]
    stream = provider.stream("m", [], [], options())
    await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    await asyncio.wait_for(raw_server.disconnected.wait(), 2)


async def test_connection_is_used_again(raw_server: RawServer, provider: OpenAIProvider) -> None:
    raw_server.answers = [RESPONSES_OK]
    for _ in range(3):
        await ask(provider)
    assert {request.connection for request in raw_server.requests} == {1}


async def test_finished_reply_does_not_wait_for_a_server_that_keeps_the_connection(
    raw_server: RawServer, provider: OpenAIProvider
) -> None:
    raw_server.answers = [Answer([*RESPONSES_OK.body, asyncio.Event()])]
    started = time.monotonic()
    assert await text_of(provider) == "from responses"
    assert time.monotonic() - started < 3


@pytest.mark.parametrize("mode", ["chat", "responses"])
async def test_answer_in_one_piece_is_understood(raw_server: RawServer, mode: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    chat = {"choices": [{"message": {"content": "whole", "tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    output = [
        {"type": "message", "content": [{"type": "output_text", "text": "whole"}]},
        {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"},
    ]
    responses = {"object": "response", "status": "completed", "output": output}
    raw_server.answers = [json_answer(chat if mode == "chat" else responses)]
    provider = OpenAIProvider(KEY, raw_server.base_url, api_mode=mode)
    chunks = await ask(provider)
    assert chunks[0].content == "whole"
    assert chunks[-1].tool_calls == [ToolCall("c", "t", "{}")]
    await provider.aclose()


async def test_web_page_instead_of_an_answer(raw_server: RawServer, provider: OpenAIProvider) -> None:
    raw_server.answers = [Answer([b"<html>log in</html>"], content_type="text/html")]
    with pytest.raises(StreamError, match="OPENAI_BASE_URL") as caught:
        await ask(provider)
    assert not caught.value.retriable


async def test_compressed_stream_is_understood(raw_server: RawServer, provider: OpenAIProvider) -> None:
    import zlib

    packed = zlib.compress(b"".join(p for p in RESPONSES_OK.body if isinstance(p, bytes)))
    raw_server.answers = [Answer([packed], headers={"content-encoding": "deflate"}, content_type=SSE)]
    assert await text_of(provider) == "from responses"


# The small request, loops, audit


async def test_chat_gives_text_or_none(raw_server: RawServer, provider: OpenAIProvider) -> None:
    raw_server.answers = [RESPONSES_OK, Answer([named(DONE)])]
    messages = [{"role": "user", "content": "name it"}]
    assert await provider.chat("m", messages, {"temperature": 0}, options(), {"max_tokens": 30}) == "from responses"
    assert raw_server.requests[0].body["max_output_tokens"] == 30
    assert raw_server.requests[0].body["temperature"] == 0
    assert await provider.chat("m", messages, None, options()) is None


def test_provider_outlives_an_event_loop() -> None:
    provider = OpenAIProvider(KEY, max_retries=0)

    async def one_turn() -> str:
        server = RawServer()
        server.answers = [RESPONSES_OK]
        async with await asyncio.start_server(server.handle, "127.0.0.1", 0) as listening:
            provider._base_url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
            text = await text_of(provider)
            await text_of(provider)
            for writer in server.writers:
                writer.transport.abort()
            return text

    # Warnings are errors: sockets left open by a loop that ended would be told.
    assert [asyncio.run(one_turn()) for _ in range(3)] == ["from responses"] * 3


async def test_audit_files(raw_server: RawServer, tmp_path: Path) -> None:
    raw_server.answers = [RESPONSES_OK, json_answer({"error": {"message": "no"}}, 500), RESPONSES_OK]
    provider = OpenAIProvider(KEY, raw_server.base_url, tmp_path / "llm", max_retries=0)
    picture = "iVBORw0KGgo" * 50
    content = [
        {"type": "text", "text": f"my key is {KEY}"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
    ]
    async for _ in provider.stream("m", [{"role": "user", "content": content}], [], options(req_id="a/b")):
        pass
    with pytest.raises(ApiStatusError):
        await ask(provider, opts=options(req_id="a/b"))
    day = tmp_path / "llm" / "2026-01-31"
    names = sorted(path.name for path in day.iterdir())
    assert names == [
        "a_b.responses-2.request.json",
        "a_b.responses-2.response.json",
        "a_b.responses.request.json",
        "a_b.responses.response.json",
    ]
    request = (day / names[2]).read_text()
    assert KEY not in request
    assert picture not in request
    assert "data:image/png;base64,(550 characters left out)" in request
    assert json.loads(request)["body"]["model"] == "m"
    response = json.loads((day / names[3]).read_text())
    assert (response["content"], response["finish_reason"]) == ("from responses", "stop")
    assert json.loads((day / names[1]).read_text())["error"]["type"] == "InternalServerError"
    assert {stat.S_IMODE(path.stat().st_mode) for path in day.iterdir()} == {0o600}
    assert stat.S_IMODE(day.stat().st_mode) == 0o700
    await provider.aclose()


async def test_audit_that_cannot_be_written_stops_nothing(
    raw_server: RawServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    raw_server.answers = [RESPONSES_OK]
    provider = OpenAIProvider(KEY, raw_server.base_url, tmp_path / "file" / "llm")
    assert await text_of(provider) == "from responses"
    assert "could not write the audit file" in caplog.text
    await provider.aclose()
