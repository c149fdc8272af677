"""Replies as they come over the network, cut, stopped, late or in another shape."""

from __future__ import annotations

import asyncio
import json
import stat
import time
from pathlib import Path

import pytest

from tests.integration.provider_questions import (
    DONE,
    KEY,
    RESPONSES_OK,
    ask,
    options,
    provider,
    text_of,
)
from tests.integration.raw_server import SSE, Answer, RawServer, json_answer
from tests.unit.providers.sse_bytes import data, delta, named
from zq_notebook.engine.messages import StreamChunk, ToolCall
from zq_notebook.errors import (
    ApiStatusError,
    StreamError,
)
from zq_notebook.providers.openai import OpenAIProvider

__all__ = ["provider"]


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


async def test_pause_longer_than_the_request_timeout_is_no_error(raw_server: RawServer) -> None:
    go_on = asyncio.Event()
    raw_server.answers = [Answer([data(delta(content="a")), go_on, data(delta("stop", content="b"), "[DONE]")])]
    provider = OpenAIProvider(KEY, raw_server.base_url, api_mode="chat", timeout_ms=100)
    asyncio.get_running_loop().call_later(0.4, go_on.set)
    assert await text_of(provider) == "ab"
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
