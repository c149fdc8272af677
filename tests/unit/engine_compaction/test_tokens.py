"""Counting tokens: estimates, and estimates corrected by what a server reported."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from zq_notebook.engine.messages import Message, TokenUsage
from zq_notebook.engine.tokens import (
    PICTURE_TOKENS,
    TokenMeter,
    ToolTokens,
    clip_tokens,
    message_tokens,
    text_tokens,
    tokens_after,
)


def test_english_has_a_token_for_four_characters_and_chinese_nearly_one_for_each() -> None:
    assert text_tokens("word" * 100) == 100
    assert 70 <= text_tokens("汉" * 100) <= 100
    assert text_tokens("") == 0


def test_lone_surrogates_are_counted_and_not_refused() -> None:
    assert text_tokens("\ud83d") > 0


def test_a_picture_costs_the_same_however_many_bytes_it_has() -> None:
    def shown(data: str) -> Message:
        return Message(role="user", content=[{"type": "image_url", "image_url": {"url": data}}])

    small, large = message_tokens(shown("data:x")), message_tokens(shown("data:" + "A" * 1_000_000))
    assert small == large
    assert PICTURE_TOKENS <= small < PICTURE_TOKENS + 20


def test_arguments_of_calls_and_kept_reasoning_count() -> None:
    plain = Message(role="assistant", content="hi")
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "x" * 4000}}
    assert message_tokens(Message(plain, tool_calls=[call])) >= message_tokens(plain) + 1000
    assert message_tokens(Message(plain, provider_items={"items": ["x" * 4000]})) >= message_tokens(plain) + 1000
    assert message_tokens(Message(plain, attachments=[{"path": "x" * 4000}])) == message_tokens(plain)


def test_a_changed_message_is_counted_again() -> None:
    message = Message(role="tool", tool_call_id="c", content="x" * 4000)
    before = message_tokens(message)
    message["content"] = "short"
    assert message_tokens(message) < before / 10


def test_without_a_report_the_count_is_the_estimate() -> None:
    count = TokenMeter().count(100, 900)
    assert (count.total, count.fixed, count.estimated) == (1000, 100, True)


def test_a_report_replaces_the_estimate_and_what_came_since_is_added() -> None:
    meter = TokenMeter()
    meter.report(1500, 100, 900)
    assert meter.count(100, 900).total == 1500
    assert not meter.count(100, 900).estimated
    assert meter.count(100, 1100).total == 1800


def test_leaving_out_half_of_the_conversation_halves_its_count() -> None:
    meter = TokenMeter()
    meter.report(1500, 0, 1000)
    assert meter.count(0, 500).total == 750


def test_a_report_far_above_the_estimate_is_put_down_to_the_conversation() -> None:
    meter = TokenMeter()
    meter.report(100_000, 4000, 1000)
    count = meter.count(4000, 1000)
    assert count.total == 100_000
    assert count.fixed == 8000
    assert meter.count(4000, 500).total < 60_000
    # New text is not measured by that factor of twenty.
    assert meter.count(4000, 1100).total <= 100_200


@given(
    reported=st.integers(1, 10**7),
    fixed=st.integers(0, 10**5),
    old=st.integers(0, 10**6),
    new=st.integers(0, 10**6),
)
def test_counts_are_never_negative_and_grow_with_the_conversation(
    reported: int, fixed: int, old: int, new: int
) -> None:
    meter = TokenMeter()
    meter.report(reported, fixed, old)
    count = meter.count(fixed, new)
    assert 0 <= count.fixed <= count.total + 1
    assert meter.count(fixed, new + 1000).total >= count.total


def test_reasoning_counts_afterwards_only_where_it_is_kept() -> None:
    usage = TokenUsage(prompt_tokens=100, completion_tokens=50, reasoning_tokens=40)
    assert tokens_after(usage, keeps_reasoning=False) == 110
    assert tokens_after(usage, keeps_reasoning=True) == 150


def test_tools_are_measured_again_when_the_table_changes() -> None:
    tools = ToolTokens()
    assert tools.count([]) == 0
    few = [{"name": "a", "description": "x" * 400}]
    assert tools.count(few) >= 100
    few.append({"name": "b", "description": "x" * 400})
    assert tools.count(few) >= 200
    assert tools.count([]) == 0


def test_clipping_to_tokens_holds_in_every_script() -> None:
    for text in ("word " * 10_000, "汉字" * 10_000, "🙂" * 10_000):
        assert 2900 <= text_tokens(clip_tokens(text, 3000)) <= 3002
    assert clip_tokens("short", 3000) == "short"


def test_measuring_a_long_history_again_is_cheap() -> None:
    messages = [Message(role="user", content="x" * 2000) for _ in range(2000)]
    sum(map(message_tokens, messages))
    start = time.process_time()
    sum(map(message_tokens, messages))
    assert time.process_time() - start < 0.01
