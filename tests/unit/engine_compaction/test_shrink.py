"""Cutting histories: whatever the history, what is left is valid and holds what it must."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.engine_compaction.helpers import INTRO, called, system, talk
from zq_notebook.engine import shrink
from zq_notebook.engine.history import pending_calls, problems
from zq_notebook.engine.messages import Message
from zq_notebook.engine.summary import record_of
from zq_notebook.engine.tokens import message_tokens, messages_tokens
from zq_notebook.languages.catalog import get_prompts

TEXTS = get_prompts("en").compaction
texts = st.integers(0, 3000).map(lambda n: "x" * n) | st.text(max_size=40)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Valid histories of every shape: with or without prompt, notes and pending calls; ids may come back later."""
    messages: list[dict[str, Any]] = [system()] if draw(st.booleans()) else []
    if draw(st.booleans()):
        messages.append({"role": "user", "content": f"{INTRO}\n\n{draw(texts)}"})
    kinds = draw(st.lists(st.sampled_from(["user", "answer", "calls", "reads"]), max_size=14))
    for kind in kinds:
        if kind == "user":
            messages.append({"role": "user", "content": draw(texts)})
        elif kind == "answer":
            messages.append({"role": "assistant", "content": draw(texts)})
        else:
            ids = draw(st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=3, unique=True))
            name = "read_file" if kind == "reads" else "grep"
            arguments = st.sampled_from(['{"path":"p"}', '{"path": "p"}', '{"path":"q"}', "[]", "{cut"])
            calls = [
                {"id": i, "type": "function", "function": {"name": name, "arguments": draw(arguments)}} for i in ids
            ]
            messages.append({"role": "assistant", "content": draw(texts), "tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": i, "content": draw(texts)} for i in ids]
    if draw(st.booleans()):
        calls = [{"id": "z", "type": "function", "function": {"name": "grep", "arguments": "{}"}}]
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
    return list(map(Message, messages))


@given(messages=histories(), keep=st.floats(0, 4000), summarize=st.booleans())
def test_what_is_left_of_any_history_is_valid_and_holds_what_it_must(
    messages: list[Message], keep: float, summarize: bool
) -> None:
    parts = shrink.split(messages, keep, INTRO)
    notes = Message(role="user", content=f"{INTRO}\n\nnew") if summarize else None
    if notes is None:
        parts = shrink.from_whole_exchange(messages, parts)
    left = shrink.rebuilt(messages, parts, notes)
    assert problems(left, allow_pending=True) == []
    assert left[: parts.head] == messages[: parts.head]
    own = [m for m in messages if m.get("role") == "user" and not shrink.is_notes(m, INTRO)]
    if own:
        assert any(m is own[-1] for m in left), "what the user said last is gone"
    assert pending_calls(left) == pending_calls(messages)
    if messages[parts.head :] and parts.cut < len(messages):
        assert left[-1] is messages[-1]
    # Nothing is invented, nothing changes its place.
    old = [id(m) for m in messages]
    positions = [old.index(id(m)) for m in left if m is not notes]
    assert positions == sorted(set(positions))
    assert sum(shrink.is_notes(m, INTRO) for m in left[: parts.head + 1]) <= 1


@given(messages=histories(), keep=st.floats(0, 4000), elide=st.booleans(), dedup=st.booleans())
def test_evicting_keeps_every_pair_saves_tokens_and_is_done_once(
    messages: list[Message], keep: float, elide: bool, dedup: bool
) -> None:
    cut = shrink.tail_start(messages, keep)
    before = list(messages)
    found = shrink.evictions(messages, cut, TEXTS, elide=elide, dedup=dedup)
    assert set(found) <= {i for i, m in enumerate(messages) if m.get("role") == "tool"}
    assert shrink.saved_tokens(messages, found) >= len(found)
    shrink.replace(messages, found)
    assert problems(messages, allow_pending=True) == []
    assert [(m.get("role"), m.get("tool_call_id")) for m in messages] == [
        (m.get("role"), m.get("tool_call_id")) for m in before
    ]
    assert shrink.evictions(messages, cut, TEXTS, elide=elide, dedup=dedup) == {}


@given(messages=histories(), keep=st.floats(0, 4000))
def test_the_tail_is_as_large_as_it_may_be(messages: list[Message], keep: float) -> None:
    start = shrink.tail_start(messages, keep)
    head = shrink.head_length(messages)
    if start == len(messages):
        assert len(messages) == head
        return
    units = [i for i in range(head, len(messages)) if messages[i].get("role") != "tool"]
    assert start in units
    assert messages_tokens(messages[start:]) <= keep or start == units[-1]
    if start != head:
        assert messages_tokens(messages[units[units.index(start) - 1] :]) > keep


def test_the_task_of_a_long_turn_and_its_later_instructions_stay() -> None:
    task, steering = {"role": "user", "content": "do X"}, {"role": "user", "content": "with tabs"}
    calls = [m for n in range(4) for m in called(n, "grep", "{}", "r" * 400)]
    messages = list(map(Message, [system(), *talk(1), task, *calls[:4], steering, *calls[4:]]))
    parts = shrink.split(messages, 120, INTRO)
    left = shrink.rebuilt(messages, parts, Message(role="user", content=INTRO))
    assert [m["content"] for m in left if m["role"] == "user"] == [INTRO, "do X", "with tabs"]


def test_without_a_summary_what_is_left_begins_with_the_user() -> None:
    messages = list(map(Message, [system(), *talk(3)]))
    keep = message_tokens(messages[-1]) * 3.5
    parts = shrink.from_whole_exchange(messages, shrink.split(messages, keep, INTRO))
    assert [m["content"][:10] for m in shrink.rebuilt(messages, parts, None)] == [
        "Be brief.",
        "question 2",
        "answer 2 a",
    ]


def test_an_earlier_summary_survives_when_no_new_one_can_be_had() -> None:
    old = {"role": "user", "content": f"{INTRO}\n\nold notes"}
    messages = list(map(Message, [system(), old, *talk(5)]))
    parts = shrink.split(messages, 150, INTRO)
    assert shrink.rebuilt(messages, shrink.from_whole_exchange(messages, parts), None)[1] is messages[1]


def test_the_later_of_two_equal_reads_stays_whatever_the_order_of_the_arguments() -> None:
    reads = [
        *called(1, "read_file", '{"path":"a","offset":1}', "old " * 400),
        *called(2, "read_file", '{"path":"b"}', "other " * 400),
        *called(3, "read_file", '{"offset": 1, "path": "a"}', "new " * 400),
    ]
    messages = list(map(Message, [system(), *reads]))
    found = shrink.evictions(messages, 0, TEXTS, elide=False, dedup=True)
    assert {i: m["content"] for i, m in found.items()} == {
        2: "[a was read again later; the later result is the current one.]"
    }


def test_a_later_read_that_failed_or_was_evicted_replaces_nothing() -> None:
    gone = TEXTS.elided_result.format(tool="read_file")
    for later in ('{"error":"no such file","error_type":"FileNotFoundError"}', gone):
        reads = [*called(1, "read_file", '{"path":"a"}', "old " * 400), *called(2, "read_file", '{"path":"a"}', later)]
        messages = list(map(Message, [system(), *reads]))
        assert shrink.evictions(messages, 0, TEXTS, elide=False, dedup=True) == {}


def test_repeated_calls_of_other_tools_are_not_repeated_reads() -> None:
    twice = [m for n in range(2) for m in called(n, "grep", '{"pattern":"a"}', "hit " * 400)]
    assert shrink.evictions(list(map(Message, twice)), 0, TEXTS, elide=False, dedup=True) == {}


def test_a_result_with_pictures_is_evicted_whole_and_a_short_one_is_left() -> None:
    shown = called(1, "plot", "{}", "")
    shown[1]["content"] = [{"type": "text", "text": "a plot"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    messages = list(map(Message, [*shown, *called(2, "grep", "{}", "three short hits")]))
    found = shrink.evictions(messages, len(messages), TEXTS, elide=True, dedup=True)
    assert {i: m["content"] for i, m in found.items()} == {1: TEXTS.elided_result.format(tool="plot")}


def test_results_that_are_too_much_by_themselves_are_shortened_in_the_middle() -> None:
    messages = list(map(Message, [system(), *called(1, "grep", "{}", "begin " + "x" * 40_000 + " end")]))
    found = shrink.clip_results(messages, 1, 1000)
    text = found[2]["content"]
    assert text.startswith("begin")
    assert text.endswith("end")
    assert "left out" in text
    assert message_tokens(found[2]) < 1300
    assert shrink.clip_results(messages, 1, 20_000) == {}


def test_what_was_said_in_plain_parts_is_part_of_the_record_for_the_summary() -> None:
    said = Message(role="user", content=["the plain part", {"type": "text", "text": "the marked part"}])
    assert record_of([said], INTRO, 1000) == "[user]\nthe plain part\nthe marked part"
