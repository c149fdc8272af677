"""Streams of Chat Completions, as servers really send them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.providers.sse_bytes import content_of, data, decode_chat, delta, pieces, reasoning_of
from zq_notebook.engine.messages import StreamChunk, TokenUsage, ToolCall
from zq_notebook.errors import ApiStatusError, ContextOverflowError, StreamError


def call(index: int | None = None, id: str | None = None, name: str | None = None, args: Any = None) -> dict[str, Any]:
    """One tool call fragment; what is None is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", args)) if value is not None}
    fields = {"index": index, "id": id, "function": function or None}
    return {key: value for key, value in fields.items() if value is not None}


def calls_of(*fragments: list[dict[str, Any]], finish: str = "tool_calls") -> list[ToolCall]:
    events = [delta(tool_calls=fragment) for fragment in fragments]
    last = decode_chat(data(*events, delta(finish), "[DONE]"))[-1]
    assert last.finish_reason == finish
    return last.tool_calls or []


ORDINARY = data(
    delta(role="assistant", content=""),
    delta(reasoning_content="Let me "),
    delta(reasoning_content="think."),
    delta(content="Grüße"),
    delta(content=" 🎉"),
    delta(tool_calls=[call(0, "call_a", "one", "")]),
    delta(tool_calls=[call(0, args='{"x":')]),
    delta(tool_calls=[call(0, args=" 1}")]),
    delta("tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}},
    "[DONE]",
)


@given(st.lists(st.integers(min_value=0, max_value=len(ORDINARY)), max_size=20))
def test_reply_does_not_depend_on_where_reads_end(cuts: list[int]) -> None:
    chunks = decode_chat(*pieces(ORDINARY, cuts))
    assert content_of(chunks) == "Grüße 🎉"
    assert reasoning_of(chunks) == "Let me think."
    assert chunks[-1].tool_calls == [ToolCall("call_a", "one", '{"x": 1}')]
    assert chunks[-1].usage == TokenUsage(7, 3, 10)
    assert chunks[-1].finish_reason == "tool_calls"


def test_each_delta_is_a_chunk_and_only_the_last_carries_the_end() -> None:
    chunks = decode_chat(data(delta(content="a"), delta(content="b"), delta("stop"), "[DONE]"))
    assert chunks == [StreamChunk(content="a"), StreamChunk(content="b"), StreamChunk(finish_reason="stop")]


def test_stream_cut_before_finish_reason_is_retriable() -> None:
    with pytest.raises(StreamError, match="ended in the middle") as caught:
        decode_chat(data(delta(content="half")))
    assert caught.value.retriable


def test_done_without_finish_reason_is_a_cut_stream() -> None:
    with pytest.raises(StreamError):
        decode_chat(data(delta(content="half"), delta(tool_calls=[call(0, "a", "t", "{")]), "[DONE]"))


def test_empty_stream_is_a_cut_stream() -> None:
    with pytest.raises(StreamError):
        decode_chat(b"")


def test_end_without_done_is_enough_after_a_finish_reason() -> None:
    assert decode_chat(data(delta("stop", content="x")))[-1].finish_reason == "stop"


@pytest.mark.parametrize("reason", ["length", "content_filter", "stop", "something_new"])
def test_finish_reasons_are_passed_on_as_they_are(reason: str) -> None:
    assert decode_chat(data(delta(reason)))[-1].finish_reason == reason


@pytest.mark.parametrize("bad", ['{"choices":[{"delta":{"content"', "not json at all", '{"choices": 5}', "[1]"])
def test_malformed_chunk_is_our_error(bad: str) -> None:
    with pytest.raises(StreamError, match="unreadable"):
        decode_chat(data(delta(content="a"), bad, delta("stop"), "[DONE]"))


def test_invalid_utf8_is_our_error() -> None:
    with pytest.raises(StreamError, match="unreadable"):
        decode_chat(b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n')


def test_character_split_into_surrogate_escapes_over_two_deltas() -> None:
    event = 'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n'
    stream = event % "a\\ud83c" + event % "\\udf89b"
    chunks = decode_chat(stream.encode(), data(delta("stop")))
    assert content_of(chunks) == "a🎉b"


def test_lone_surrogate_is_replaced() -> None:
    chunks = decode_chat(b'data: {"choices":[{"delta":{"content":"a\\udf89b"},"finish_reason":"stop"}]}\n\n')
    assert content_of(chunks) == "a\ufffdb"


def test_error_objects_in_the_stream() -> None:
    with pytest.raises(ApiStatusError, match="too fast") as caught:
        decode_chat(data(delta(content="a"), {"error": {"message": "too fast", "code": "rate_limit_exceeded"}}))
    assert caught.value.status == 429
    assert caught.value.retriable
    with pytest.raises(ApiStatusError) as caught:
        decode_chat(data({"error": {"message": "upstream", "code": 502}}))
    assert caught.value.status == 502
    with pytest.raises(ContextOverflowError):
        decode_chat(data({"error": {"message": "maximum context length is 8192 tokens"}}))
    with pytest.raises(StreamError, match=r"broke off.*what a mess"):
        decode_chat(data({"error": "what a mess"}))
    with pytest.raises(StreamError, match="old vLLM"):
        decode_chat(data({"object": "error", "message": "old vLLM"}))
    with pytest.raises(StreamError, match="named"):
        decode_chat(b'event: error\ndata: {"message":"named"}\n\n')
    with pytest.raises(ApiStatusError) as caught:
        decode_chat(data({"error": {"message": "bad", "type": "invalid_request_error"}}))
    assert not caught.value.retriable


def test_oddities_that_are_no_errors() -> None:
    chunks = decode_chat(
        data(
            {"choices": [], "error": None},
            {"choices": None},
            {"prompt_filter_results": [{"x": 1}], "choices": []},
            {"choices": [{"index": 1, "delta": {"content": "another choice"}}]},
            {"choices": [{"index": 0, "delta": None}]},
            {"choices": [{"index": 0, "delta": {"content": None, "tool_calls": None}, "finish_reason": ""}]},
            {"choices": [{"index": 0, "delta": {"content": [{"type": "text", "text": "parts"}]}}]},
            {"choices": [{"index": 0, "delta": {"content": [{"type": "thinking", "thinking": [{"text": "hm"}]}]}}]},
            delta(refusal="No."),
            delta(reasoning="aloud"),
            delta("stop"),
            {"choices": [], "usage": None},
        )
    )
    assert content_of(chunks) == "partsNo."
    assert reasoning_of(chunks) == "hmaloud"


def test_usage_with_details() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 15},
    }
    assert decode_chat(data(delta("stop"), {"choices": [], "usage": usage}))[-1].usage == TokenUsage(
        100, 20, 120, 60, 15
    )
    deepseek = {"prompt_tokens": 100, "completion_tokens": None, "prompt_cache_hit_tokens": 64}
    assert decode_chat(data(delta("stop"), {"usage": deepseek}))[-1].usage == TokenUsage(100, 0, 100, 64, 0)


def test_calls_by_index_interleaved() -> None:
    assert calls_of(
        [call(0, "a", "one", "")],
        [call(1, "b", "two", "")],
        [call(0, args='{"x"'), call(1, args="{")],
        [call(0, args=":1}")],
        [call(1, args="}")],
    ) == [ToolCall("a", "one", '{"x":1}'), ToolCall("b", "two", "{}")]


def test_equal_indexes_with_different_ids_are_different_calls() -> None:
    assert calls_of([call(0, "a", "one", "{}")], [call(0, "b", "two", "{")], [call(0, args="}")]) == [
        ToolCall("a", "one", "{}"),
        ToolCall("b", "two", "{}"),
    ]


def test_id_on_every_fragment_is_one_call() -> None:
    assert calls_of([call(0, "a", "one", '{"x"')], [call(0, "a", "one", ":1}")]) == [ToolCall("a", "one", '{"x":1}')]
    assert calls_of([call(None, "a", "one", '{"x"')], [call(None, "a", None, ":1}")]) == [
        ToolCall("a", "one", '{"x":1}')
    ]


def test_whole_calls_without_index_or_id() -> None:
    made = calls_of([call(name="one", args='{"x":1}'), call(name="two", args="{}")], [call(name="one", args='{"x":1}')])
    assert [(c.name, c.arguments) for c in made] == [("one", '{"x":1}'), ("two", "{}"), ("one", '{"x":1}')]
    assert len({c.id for c in made}) == 3
    assert all(c.id.startswith("call_") for c in made)


def test_missing_ids_with_the_same_index_are_told_apart_by_complete_arguments() -> None:
    made = calls_of([call(0, name="one", args="{}")], [call(0, name="one", args='{"y":2}')])
    assert [c.arguments for c in made] == ["{}", '{"y":2}']


def test_fragments_without_index_go_to_the_last_call() -> None:
    assert calls_of([call(id="a", name="one", args='{"x"')], [call(args=":1}")]) == [ToolCall("a", "one", '{"x":1}')]


def test_arguments_as_an_object_and_no_arguments() -> None:
    assert calls_of([call(0, "a", "one", {"x": [1]}), call(1, "b", "two")]) == [
        ToolCall("a", "one", '{"x":[1]}'),
        ToolCall("b", "two", "{}"),
    ]


def test_the_same_id_twice_gets_a_second_id() -> None:
    first, second = calls_of([call(0, "a", "one", "{}"), call(1, "a", "two", "{}")])
    assert first.id == "a"
    assert second.id not in ("", "a")
    assert second.name == "two"


def test_name_in_pieces_and_repeated_name() -> None:
    assert calls_of([call(0, "a", "read_")], [call(0, name="file", args="{}")])[0].name == "read_file"
    assert calls_of([call(0, "a", "read")], [call(0, name="read", args="{}")])[0].name == "read"


def test_empty_fragments_make_no_call() -> None:
    assert calls_of([call(0, name="", args="")], [{}], finish="stop") == []


def test_calls_with_finish_reason_stop_are_still_calls() -> None:
    assert len(calls_of([call(0, "a", "one", "{}")], finish="stop")) == 1


@given(st.integers(min_value=1, max_value=5), st.lists(st.integers(min_value=1, max_value=6), min_size=1, max_size=30))
def test_many_calls_in_random_slices(count: int, sizes: list[int]) -> None:
    wanted = [ToolCall(f"id{n}", f"tool{n}", f'{{"n":{n},"text":"{"x" * n}"}}') for n in range(count)]
    fragments = [[call(n, c.id, c.name, "")] for n, c in enumerate(wanted)]
    rest = [c.arguments for c in wanted]
    turn = 0
    while any(rest):
        n = turn % count
        size = sizes[turn % len(sizes)]
        fragments.append([call(n, args=rest[n][:size])])
        rest[n] = rest[n][size:]
        turn += 1
    assert calls_of(*fragments) == wanted


def test_thought_before_a_call_is_kept_for_the_servers_that_want_it_back() -> None:
    chunks = decode_chat(ORDINARY)
    assert chunks[-1].extra == {"provider_items": {"reasoning_content": "Let me think."}}
    assert decode_chat(data(delta(reasoning_content="x"), delta("stop", content="y")))[-1].extra is None
