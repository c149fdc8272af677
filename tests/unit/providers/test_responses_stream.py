"""Streams of the Responses API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.sse_bytes import SERVER, content_of, decode_responses, named, pieces, reasoning_of
from zq_notebook.engine.messages import StreamChunk, TokenUsage, ToolCall
from zq_notebook.errors import ApiStatusError, ContextOverflowError, StreamError
from zq_notebook.providers.responses_stream import ResponsesDecoder

REASONING = {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA", "summary": [], "status": None}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi é"}]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "one", "arguments": '{"x":1}'}


def text(value: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": 0, "delta": value}


def item_done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def ended(kind: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "response": {"object": "response", "status": kind, **fields}}


ORDINARY = named(
    {"type": "response.created", "response": {"status": "in_progress"}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "id": "rs_1"}},
    {"type": "response.reasoning_summary_part.added", "summary_index": 0},
    {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "First."},
    {"type": "response.reasoning_summary_part.added", "summary_index": 1},
    {"type": "response.reasoning_summary_text.delta", "summary_index": 1, "delta": "Second."},
    item_done(0, REASONING),
    {"type": "response.output_item.added", "output_index": 1, "item": {**MESSAGE, "content": []}},
    text("Hi "),
    text("é"),
    item_done(1, MESSAGE),
    {"type": "response.output_item.added", "output_index": 2, "item": {**CALL, "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"x":'},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": "1}"},
    {"type": "response.function_call_arguments.done", "output_index": 2, "arguments": '{"x":1}'},
    item_done(2, CALL),
    ended(
        usage={
            "input_tokens": 9,
            "output_tokens": 4,
            "total_tokens": 13,
            "input_tokens_details": {"cached_tokens": 5},
            "output_tokens_details": {"reasoning_tokens": 2},
        }
    ),
)


@given(st.lists(st.integers(min_value=0, max_value=len(ORDINARY)), max_size=20))
def test_reply_does_not_depend_on_where_reads_end(cuts: list[int]) -> None:
    chunks = decode_responses(*pieces(ORDINARY, cuts))
    assert content_of(chunks) == "Hi é"
    assert reasoning_of(chunks) == "First.\n\nSecond."
    assert chunks[-1] == StreamChunk(
        tool_calls=[ToolCall("call_1", "one", '{"x":1}')],
        usage=TokenUsage(9, 4, 13, 5, 2),
        finish_reason="tool_calls",
        extra={
            "provider_items": {
                "model": "m",
                "items": [
                    {"type": "reasoning", "id": "rs_1", "encrypted_content": "gAAA", "summary": []},
                    {"type": "message", "id": "msg_1", "chars": 4},
                    {"type": "function_call", "id": "fc_1", "call_id": "call_1"},
                ],
            }
        },
    )


def test_nothing_is_kept_without_encrypted_reasoning() -> None:
    stream = named(text("Hi é"), item_done(0, {**REASONING, "encrypted_content": None}), item_done(1, MESSAGE), ended())
    assert decode_responses(stream)[-1] == StreamChunk(finish_reason="stop")


def test_reasoning_that_nothing_followed_is_not_kept() -> None:
    assert decode_responses(named(item_done(0, REASONING), ended("incomplete")))[-1].extra is None


@pytest.mark.parametrize("end", [b"", b"data: [DONE]\n\n"])
def test_stream_cut_before_completed_is_retriable(end: bytes) -> None:
    with pytest.raises(StreamError, match="ended in the middle") as caught:
        decode_responses(named(text("half"), item_done(1, CALL)) + end)
    assert caught.value.retriable


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter"), (None, "incomplete")]
)
def test_incomplete_says_why(reason: str | None, finish: str) -> None:
    details = {"reason": reason} if reason else None
    chunks = decode_responses(named(text("half"), ended("incomplete", incomplete_details=details)))
    assert content_of(chunks) == "half"
    assert chunks[-1].finish_reason == finish


def test_failed_and_error_events_are_our_errors() -> None:
    with pytest.raises(ApiStatusError, match="It says: boom") as caught:
        decode_responses(named(ended("failed", error={"code": "server_error", "message": "boom"})))
    assert caught.value.retriable
    with pytest.raises(ApiStatusError) as caught:
        decode_responses(named({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}))
    assert caught.value.status == 429
    with pytest.raises(ContextOverflowError):
        decode_responses(named(ended("failed", error={"code": "context_length_exceeded", "message": "too long"})))
    with pytest.raises(StreamError, match="odd"):
        decode_responses(b'data: {"error":{"message":"odd"}}\n\n')
    with pytest.raises(StreamError, match="plain"):
        decode_responses(b'data: {"type":"error","message":"plain"}\n\n')
    with pytest.raises(StreamError, match="cancelled"):
        decode_responses(named(ended("cancelled")))
    with pytest.raises(StreamError, match="unreadable"):
        decode_responses(b"data: {]\n\n")


def test_items_only_in_the_completed_event() -> None:
    chunks = decode_responses(named(ended(output=[MESSAGE, CALL])))
    assert content_of(chunks) == "Hi é"
    assert chunks[-1].tool_calls == [ToolCall("call_1", "one", '{"x":1}')]


def test_arguments_only_in_deltas_and_no_numbers() -> None:
    stream = named(
        {"type": "response.output_item.added", "item": {**CALL, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "delta": '{"y":'},
        {"type": "response.function_call_arguments.delta", "delta": "2}"},
        ended(),
    )
    assert decode_responses(stream)[-1].tool_calls == [ToolCall("call_1", "one", '{"y":2}')]


def test_refusal_and_open_reasoning_are_text() -> None:
    stream = named(
        {"type": "response.reasoning_text.delta", "delta": "hm"},
        {"type": "response.refusal.delta", "delta": "No."},
        {"type": "response.some_new_event", "delta": {"anything": 1}},
        ended(),
    )
    chunks = decode_responses(stream)
    assert (reasoning_of(chunks), content_of(chunks)) == ("hm", "No.")


def test_reply_in_one_piece() -> None:
    decoder = ResponsesDecoder(SERVER)
    whole = {"object": "response", "status": "completed", "error": None, "output": [MESSAGE]}
    assert content_of(decoder.feed_whole(json.dumps(whole).encode())) == "Hi é"
    assert decoder.finish().finish_reason == "stop"
