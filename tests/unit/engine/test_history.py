"""The invariant of a history, the repair of a given one, and the same under random turns."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import pickle
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.engine.play import check_turn, make_engine, play
from zq_notebook.engine import history
from zq_notebook.engine.approval import PermissionRequest
from zq_notebook.engine.messages import Message, ToolCall
from zq_notebook.errors import ApiStatusError, NetworkError, ProviderError, UsageError
from zq_notebook.providers.scripted import ScriptedProvider, Step


def says(*ids: str) -> dict[str, Any]:
    calls = [ToolCall(call_id, "look", "{}").to_message() for call_id in ids]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def result(call_id: str, text: str = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


USER = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([USER], ""),
        ([USER, says("a", "b"), result("a"), result("b"), USER], ""),
        ([says("a"), result("a"), says("a"), result("a")], ""),
        ([says("a")], "no result"),
        ([says("a"), USER], "calls without result: \\['a'\\]"),
        ([result("a")], "nobody called"),
        ([says("a"), result("a"), result("a")], "nobody called"),
        ([says("a", "b"), result("b"), result("a")], "where 'a' was expected"),
        ([says("a", "a"), result("a"), result("a")], "used twice"),
    ],
)
def test_problems(messages: list[Any], complaint: str) -> None:
    found = history.problems(messages)
    assert bool(found) is bool(complaint)
    if complaint:
        assert any(re.search(complaint, problem) for problem in found)


def test_only_the_last_calls_may_be_pending() -> None:
    assert history.problems([says("a", "b"), result("a")], allow_pending=True) == []
    assert history.problems([says("a"), USER], allow_pending=True) != []


@pytest.mark.parametrize(
    ("given_messages", "roles"),
    [
        ([result("a"), USER], ["user"]),
        ([USER, says("a"), USER], ["user", "assistant", "tool", "user"]),
        ([says("a", "b"), result("b"), result("a"), USER], ["assistant", "tool", "tool", "user"]),
        ([says("a"), result("a"), result("a"), result("z"), USER], ["assistant", "tool", "user"]),
        ([says("a", "a"), result("a", "1"), result("a", "2"), USER], ["assistant", "tool", "tool", "user"]),
        ([says("", ""), result("", "1"), result("", "2"), USER], ["assistant", "tool", "tool", "user"]),
        ([USER, says("a"), USER, result("a"), USER], ["user", "assistant", "tool", "user", "user"]),
    ],
)
async def test_an_invalid_history_is_put_right_at_the_start(given_messages: list[Any], roles: list[str]) -> None:
    before = copy.deepcopy(given_messages)
    engine = make_engine(["ok"], messages=given_messages)
    assert history.problems(engine.messages) == []
    assert [message["role"] for message in engine.messages[1:]] == roles
    await play(engine)
    assert given_messages == before


def test_a_valid_history_is_taken_as_it_is() -> None:
    messages = [
        USER,
        says("a", "b"),
        result("a"),
        result("b"),
        {"role": "assistant", "content": "k", "extra": {"x": 1}},
    ]
    assert make_engine([], messages=messages).messages[1:] == messages


def test_results_in_an_order_of_their_own_follow_the_calls() -> None:
    messages = [says("a", "b"), result("b", "B"), result("a", "A"), USER]
    assert [m.get("content") for m in history.restored(messages, "lost")[1:3]] == ["A", "B"]


def test_calls_with_arguments_as_objects_or_without_a_function_key_are_understood() -> None:
    call = {"id": "a", "name": "look", "arguments": {"n": 1}}
    (message,) = history.restored([{"role": "assistant", "content": None, "tool_calls": [call]}], "lost")
    assert history.pending_calls([message]) == [ToolCall("a", "look", '{"n":1}')]


message_lists = st.lists(
    st.one_of(
        st.just(USER),
        st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=4).map(lambda ids: says(*ids)),
        st.sampled_from(["a", "b", "c", "z", ""]).map(result),
    ),
    max_size=12,
)


@given(message_lists)
def test_any_list_of_messages_becomes_valid(messages: list[Any]) -> None:
    before = copy.deepcopy(messages)
    restored = history.restored(messages, "lost")
    assert messages == before
    pending = history.pending_calls(restored)
    history.answer_pending(restored, "gone")
    assert history.problems(restored) == []
    assert history.restored(restored, "lost") == restored
    if pending:
        assert history.pending_calls(restored) == []


def test_a_message_is_a_dictionary_that_forgets_its_encoded_form_when_changed() -> None:
    changes = [
        lambda m: m.update(content="y"),
        lambda m: m.__setitem__("content", "y"),
        lambda m: m.__delitem__("content"),
        lambda m: m.pop("content"),
        lambda m: m.setdefault("new", 1),
        lambda m: m.popitem(),
        lambda m: m.clear(),
        lambda m: m.__ior__({"content": "y"}),
    ]
    for change in changes:
        message = Message(role="user", content="x")
        message.encoded["wire"] = b"x"
        change(message)
        assert message.encoded == {}
        assert type(message) is Message


def test_a_message_can_be_copied_pickled_and_written() -> None:
    message = Message(role="user", content=["x"])
    message.encoded["wire"] = b"x"
    for twin in (copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert twin == message
        assert twin.encoded == {}
    assert json.loads(json.dumps(message)) == message


# Random turns

errors = st.sampled_from(
    [NetworkError("lost"), ProviderError("no"), ApiStatusError("busy", status=503), ValueError("bug")]
)
calls = st.lists(
    st.tuples(
        st.sampled_from(["good", "bad", "slow", "gives_up", "act", "unknown"]),
        st.sampled_from(["{}", '{"n": 1}', "[]", "{", '{"n": "x"}', '{"path": "\\ud83d"}']),
    ),
    max_size=4,
)
steps = st.builds(
    Step,
    text=st.sampled_from(["", "word", "two words"]),
    reasoning=st.sampled_from(["", "hm"]),
    tool_calls=calls,
    error=st.one_of(st.none(), st.none(), st.none(), errors),
    finish_reason=st.sampled_from([None, None, None, ""]),
)


@settings(max_examples=120, deadline=None)
@given(
    script=st.lists(steps, min_size=1, max_size=4),
    answers=st.lists(st.sampled_from(["once", "deny", "always_tool", "nonsense", ValueError]), min_size=1, max_size=4),
    stops=st.lists(st.tuples(st.sampled_from(["stop", "leave", "steer"]), st.integers(0, 25)), max_size=2),
    limit=st.integers(1, 4),
    final=st.booleans(),
)
def test_whatever_happens_in_a_turn_the_history_is_valid_and_the_turn_ends_once(
    script: list[Step], answers: list[Any], stops: list[tuple[str, int]], limit: int, final: bool
) -> None:
    async def main() -> None:
        async def slow(args: Any) -> str:
            await asyncio.sleep(0.001)
            return "slow"

        async def gives_up(args: Any) -> None:
            raise asyncio.CancelledError

        def bad(args: Any) -> None:
            raise RuntimeError("bad")

        def approve(request: PermissionRequest) -> Any:
            answer = answers[len(asked) % len(answers)]
            asked.append(request)
            if answer is ValueError:
                raise ValueError("approver")
            return answer

        asked: list[PermissionRequest] = []
        provider = ScriptedProvider([*script, "end"])
        engine = make_engine(
            provider,
            low={"good": lambda args: "good", "bad": bad, "slow": slow, "gives_up": gives_up},
            high={"act": lambda args: "acted"},
            approver=approve,
            max_iterations=limit,
            finalize_on_max_iterations=final,
        )
        events = []
        left, failure = False, None
        stream = engine.run("go")
        try:
            async for event in stream:
                events.append(event)
                for what, at in stops:
                    if at != len(events):
                        continue
                    if what == "stop":
                        engine.request_interrupt()
                    elif what == "steer":
                        engine.queue_steering("hurry")
                    else:
                        left = True
                if left:
                    break
        except (UsageError, ValueError) as error:
            failure = error
        await stream.aclose()
        assert failure is None or "approver" in str(failure)
        if not left:
            check_turn(events, engine)
        assert history.problems(engine.messages) == []
        assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]
        sent = [json.dumps(request.messages)[:-1] for request in provider.requests]
        for earlier, later in itertools.pairwise(sent):
            assert later.startswith(earlier)
        engine.max_iterations = 9
        provider.steps[provider.position :] = ["next"]
        assert (await play(engine))[-1].data["status"] == "completed"

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NETWORK_RETRY_BASE_MS", "0")
        asyncio.run(main())
