"""Iterations, finalisation, steering, attachments, settings that change at runtime (Manual §6, §12.5, §13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.engine.play import Chunks, Looping, drain, make_engine, of_type, play, results, types, wire
from zq_notebook.engine.messages import StreamChunk, ToolCall
from zq_notebook.errors import ModelNotSetError, UsageError
from zq_notebook.providers.scripted import ScriptedProvider, Step

LOOK = Step("", tool_calls=[("look", {})])
PNG = {"name": "a.png", "mimeType": "image/png", "dataUrl": "data:image/png;base64,AAAA"}
REF = {"name": "a.png", "mimeType": "image/png", "size": 3, "path": "attachments/a.png"}


async def test_the_limit_of_iterations_ends_the_turn() -> None:
    engine = make_engine([LOOK] * 3, low={"look": str}, max_iterations=3)
    events = await play(engine)
    assert events[-1].data["status"] == "max_iterations_exceeded"
    assert events[-1].data["iterations"] == 3
    assert types(events)[-2] == "iteration_end"
    assert engine.messages[-1]["role"] == "tool"


async def test_an_answer_in_the_last_iteration_is_an_answer() -> None:
    engine = make_engine([LOOK, "done"], low={"look": str}, max_iterations=2)
    assert (await play(engine))[-1].data["status"] == "completed"


async def test_finalisation_asks_once_more_without_tools() -> None:
    provider = ScriptedProvider([LOOK, Step("So far …", expect="limit of steps for this turn (1)")])
    engine = make_engine(provider, low={"look": str}, max_iterations=1, finalize_on_max_iterations=True)
    events = await play(engine)
    assert types(events)[-5:] == ["iteration_end", "llm_request", "assistant_delta", "assistant_message", "turn_end"]
    assert events[-1].data == {**events[-1].data, "status": "max_iterations_exceeded", "iterations": 1}
    assert provider.requests[1].tools == []
    assert of_type(events, "llm_request")[1].data["toolCount"] == 0
    assert engine.messages[-1] == {"role": "assistant", "content": "So far …"}


async def test_calls_in_the_finalisation_are_dropped_with_what_belongs_to_them() -> None:
    call = ToolCall("c", "look", "{}")
    provider = Chunks([StreamChunk(content="still", tool_calls=[call], extra={"provider_items": {"items": [1]}})])
    engine = make_engine(provider, low={"look": str}, max_iterations=0, finalize_on_max_iterations=True)
    events = await play(engine)
    assert of_type(events, "tool_proposed") == []
    assert of_type(events, "assistant_message")[0].data["tool_calls"] == []
    assert engine.messages[-1] == {"role": "assistant", "content": "still"}


async def test_an_empty_model_raises_and_nothing_is_begun() -> None:
    engine = make_engine(["never"])
    engine.model = ""
    with pytest.raises(ModelNotSetError, match="No model specified"):
        await drain(engine.run("go"))
    assert len(engine.messages) == 1
    assert not engine.busy
    engine.model = "now-set"
    await play(engine)


async def test_steering_is_injected_between_iterations() -> None:
    provider = ScriptedProvider([LOOK, Step("ok", expect="faster")])
    engine = make_engine(provider, low={"look": str})
    events = []
    async for event in engine.run("go", task_id="T"):
        events.append(event)
        if event.type == "tool_started":
            engine.queue_steering("faster", [PNG], [REF])
    seen = wire(events)
    at = [kind for kind, _ in seen].index("queue_steering")
    assert seen[at - 1][0] == "iteration_end"
    assert seen[at] == ("queue_steering", {"text": "faster", "taskId": "T", "attachments": [REF]})
    assert seen[at + 1][0] == "llm_request"
    last = provider.requests[1].messages[-1]
    assert last["content"][1]["image_url"]["url"] == PNG["dataUrl"]
    assert last["attachments"] == [REF]
    assert "base64" not in str(engine.messages)


async def test_steering_after_the_answer_asks_the_model_again() -> None:
    engine = make_engine(["first", Step("second", expect="also this")])
    events = []
    async for event in engine.run("go"):
        events.append(event)
        if event.type == "assistant_message" and event.data["text"] == "first":
            engine.queue_steering("also this")
    assert events[-1].data["iterations"] == 2
    assert "attachments" not in of_type(events, "queue_steering")[0].data


async def test_steering_can_be_taken_back_until_it_is_injected() -> None:
    engine = make_engine([Step("ok", expect="two")])
    engine.queue_steering("one")
    engine.queue_steering("two")
    assert engine.remove_steering("one") is True
    events = await play(engine)
    assert [event.data["text"] for event in of_type(events, "queue_steering")] == ["two"]
    assert engine.remove_steering("two") is False
    assert engine.remove_steering("never there") is False


async def test_attachments_go_to_the_model_for_their_turn_only() -> None:
    provider = ScriptedProvider([LOOK, "seen", "later"])
    engine = make_engine(provider, low={"look": str})
    events = await play(engine, "what is this?", attachments=[PNG], refs=[REF], task_id="T")
    assert wire(events)[0] == (
        "turn_start",
        {"taskId": "T", "input": "what is this?", "attachmentCount": 1, "attachments": [REF]},
    )
    for request in provider.requests:
        parts = request.messages[1]["content"]
        assert parts == [
            {"type": "text", "text": "what is this?"},
            {"type": "image_url", "image_url": {"url": PNG["dataUrl"]}},
        ]
    await play(engine, "and now?")
    assert "base64" not in str(provider.requests[2].messages)
    assert provider.requests[2].messages[1]["content"] == "what is this?\n[Images shown earlier: 1]"
    assert provider.requests[2].messages[1]["attachments"] == [REF]


async def test_pictures_by_address_are_not_base64_and_stay() -> None:
    parts = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
    engine = make_engine(["ok"], messages=[{"role": "user", "content": parts}, {"role": "assistant", "content": "k"}])
    await play(engine)
    assert engine.messages[1]["content"] == parts


async def test_refs_of_the_caller_and_of_the_events_are_apart() -> None:
    ref = dict(REF)
    engine = make_engine(["ok"])
    events = await play(engine, refs=[ref])
    events[0].data["attachments"][0]["name"] = "changed"
    assert ref == REF
    assert engine.messages[1]["attachments"] == [REF]


async def test_model_prompt_and_tools_may_change_between_requests() -> None:
    provider = ScriptedProvider([LOOK, "done"])
    engine = make_engine(provider, low={"look": str}, reasoning_effort="low")
    async for event in engine.run("go"):
        if event.type == "iteration_end" and event.data["iteration"] == 1:
            engine.set_system_prompt("You are another.")
            engine.reasoning_effort = "high"
            engine.registry.disable("look")  # type: ignore[attr-defined]
    first, second = provider.requests
    assert [first.options.reasoning_effort, second.options.reasoning_effort] == ["low", "high"]
    assert second.messages[0] == {"role": "system", "content": "You are another."}
    assert [len(first.tools), len(second.tools)] == [1, 0]


async def test_system_prompt_can_be_set_on_an_emptied_history() -> None:
    engine = make_engine(["ok"])
    engine.messages.clear()
    engine.set_system_prompt("fresh")
    await play(engine)
    assert engine.messages[0] == {"role": "system", "content": "fresh"}


@pytest.mark.parametrize("given", [[], [{"role": "user", "content": "hi"}]])
def test_instructions_are_put_in_front_unless_there_is_a_system_message(given: Sequence[Any]) -> None:
    assert make_engine([], messages=given).messages == [{"role": "system", "content": "You are a test."}, *given]
    kept = [{"role": "system", "content": "mine"}, *given]
    assert make_engine([], messages=kept).messages == kept


async def test_a_thousand_iterations_in_one_turn() -> None:
    engine = make_engine(Looping(1000), low={"look": lambda args: "x"}, max_iterations=2000)
    events = await play(engine)
    assert events[-1].data["iterations"] == 1001
    assert len(results(engine)) == 1000
    ids = [event.data["reqId"] for event in of_type(events, "tool_finished")]
    assert len(set(ids)) == 1000


@pytest.mark.parametrize("message", ["hi", {"content": "no role"}, {"role": 5}, None])
def test_something_else_than_a_message_is_refused_with_its_place(message: Any) -> None:
    with pytest.raises(UsageError, match=r"messages\[1\] is not a message"):
        make_engine([], messages=[{"role": "user", "content": "x"}, message])
