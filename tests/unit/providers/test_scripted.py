"""The scripted model: what it streams, and how it complains."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from zq_notebook.engine.messages import StreamChunk, TokenUsage, ToolCall
from zq_notebook.engine.ports import StreamOptions
from zq_notebook.errors import NetworkError, ScriptError
from zq_notebook.providers.scripted import ScriptedProvider, Step


def options() -> StreamOptions:
    return StreamOptions(req_id="r", log_time="2026-01-01T00:00:00Z")


async def ask(provider: ScriptedProvider, text: str = "hi", **kwargs: Any) -> list[StreamChunk]:
    messages = kwargs.pop("messages", [{"role": "user", "content": text}])
    return [chunk async for chunk in provider.stream("demo", messages, kwargs.pop("tools", []), options())]


async def test_text_arrives_in_words_and_ends_with_a_finish_reason() -> None:
    text = "One two\n\nthree. "
    chunks = await ask(ScriptedProvider([text]))
    assert [c.content for c in chunks[:-1]] == ["One", " two", "\n\nthree.", " "]
    assert chunks[-1] == StreamChunk(finish_reason="stop")


async def test_chunk_size_counts_characters() -> None:
    chunks = await ask(ScriptedProvider([{"text": "abcde", "chunk_size": 2}]))
    assert [c.content for c in chunks[:-1]] == ["ab", "cd", "e"]


async def test_calls_in_every_form_get_ids_that_do_not_change() -> None:
    step = Step(
        "",
        reasoning="hm",
        tool_calls=[
            ToolCall("mine", "a", "{}"),
            ("b", {"x": 1}),
            {"name": "c", "arguments": {"y": [2]}, "id": "c9"},
            ("d", "{not json"),
        ],
        usage={"prompt_tokens": 3},
    )
    chunks = await ask(ScriptedProvider([step]))
    assert chunks[0] == StreamChunk(reasoning="hm")
    assert chunks[-1].tool_calls == [
        ToolCall("mine", "a", "{}"),
        ToolCall("call_2", "b", '{"x":1}'),
        ToolCall("c9", "c", '{"y":[2]}'),
        ToolCall("call_4", "d", "{not json"),
    ]
    assert chunks[-1].finish_reason == "tool_calls"
    assert chunks[-1].usage == TokenUsage(prompt_tokens=3)


async def test_a_request_too_many_raises_and_is_told_again_at_the_end() -> None:
    provider = ScriptedProvider(["only one"])
    await ask(provider)
    with pytest.raises(ScriptError, match=r"has 1 steps, and request 2 .* user message 'again'"):
        await ask(provider, "again")
    with pytest.raises(ScriptError, match="request 2"):
        provider.assert_finished()


async def test_steps_left_over_are_named() -> None:
    provider = ScriptedProvider(["a", Step("b", tool_calls=[("grep", {})]), lambda messages: "c"])
    await ask(provider)
    with pytest.raises(ScriptError, match=r"step 2: 'b', calls grep; step 3: function <lambda>"), provider:
        pass


async def test_context_manager_does_not_hide_what_the_block_raised() -> None:
    with pytest.raises(ZeroDivisionError), ScriptedProvider(["left over"]):
        raise ZeroDivisionError


async def test_expect_says_what_was_wanted_and_what_came() -> None:
    with pytest.raises(ScriptError, match=r"expected a message with '42', .* tool message 'no'"):
        await ask(ScriptedProvider([Step("x", expect="42")]), messages=[{"role": "tool", "content": "no"}])


async def test_expect_may_be_a_function_of_the_last_message() -> None:
    def is_tool(message: Any) -> bool:
        return bool(message["role"] == "tool")

    await ask(ScriptedProvider([Step("x", expect=is_tool)]), messages=[{"role": "tool", "content": "no"}])
    with pytest.raises(ScriptError, match="is_tool accepts"):
        await ask(ScriptedProvider([Step("x", expect=is_tool)]))


async def test_expect_looks_into_parts() -> None:
    parts = [{"type": "text", "text": "the answer"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    await ask(ScriptedProvider([Step("x", expect="answer")]), messages=[{"role": "user", "content": parts}])


async def test_error_comes_after_the_text() -> None:
    stream = ScriptedProvider([Step("half an", error=NetworkError("gone"))]).stream("demo", [], [], options())
    assert [(await anext(stream)).content for _ in range(2)] == ["half", " an"]
    with pytest.raises(NetworkError, match="gone"):
        await anext(stream)


async def test_empty_finish_reason_cuts_the_stream() -> None:
    chunks = await ask(ScriptedProvider([Step("x", finish_reason="")]))
    assert chunks[-1].finish_reason is None
    assert chunks[-1].tool_calls is None


async def test_function_sees_the_messages() -> None:
    chunks = await ask(ScriptedProvider([lambda messages: messages[-1]["content"].upper()]), "loud")
    assert chunks[0].content == "LOUD"


async def test_unknown_key_of_a_step_is_named() -> None:
    with pytest.raises(ScriptError, match="unknown keys txt"):
        await ask(ScriptedProvider([{"txt": "x"}]))


async def test_requests_are_kept_as_they_were() -> None:
    provider = ScriptedProvider(["x"])
    messages = [{"role": "user", "content": "one"}]
    tools = [{"type": "function", "function": {"name": "t"}}]
    await ask(provider, messages=messages, tools=tools)
    messages[0]["content"] = "changed"
    messages.append({"role": "user", "content": "two"})
    assert provider.requests[0].messages == [{"role": "user", "content": "one"}]
    assert provider.requests[0].tools == tools
    assert provider.requests[0].model == "demo"


async def test_cancel_ends_a_delayed_stream_at_once() -> None:
    opts = options()
    stream = ScriptedProvider([Step("a b c", delay=0.01)]).stream("demo", [], [], opts)
    await anext(stream)
    slow = ScriptedProvider([Step("a b c", delay=30)]).stream("demo", [], [], opts)
    waiting = asyncio.ensure_future(anext(slow, None))
    asyncio.get_running_loop().call_soon(opts.cancel.set)
    started = time.monotonic()
    assert await waiting is None
    assert await anext(stream, None) is None
    assert time.monotonic() - started < 5


async def test_cancelling_the_task_ends_a_delay() -> None:
    slow = ScriptedProvider([Step("a", delay=30)]).stream("demo", [], [], options())
    task = asyncio.ensure_future(anext(slow))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_chat_answers_from_its_own_list() -> None:
    provider = ScriptedProvider(chat_replies=["A name"])
    assert await provider.chat("demo", [], None, options()) == "A name"
    assert await provider.chat("demo", [], None, options()) is None
    assert len(provider.chat_requests) == 2
    provider.assert_finished()
