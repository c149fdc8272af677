"""The second listener beside the stream: what it hears, and that it can harm nothing (Manual §11)."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tests.unit.engine.play import make_engine, of_type, play
from tests.unit.engine.test_events import SHAPES
from zq_notebook.engine.events import EVENT_CLASSES
from zq_notebook.engine.hooks import CompositeHook, EngineHook, notify
from zq_notebook.providers.scripted import Step

METHODS = [name for name in vars(EngineHook) if name.startswith("on_")]
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


class Recorder(EngineHook):
    """Every call with its arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]


def _recording(name: str) -> Any:
    def call(self: Recorder, *args: Any) -> None:
        self.calls.append((name, args))

    return call


for _name in METHODS:
    setattr(Recorder, _name, _recording(_name))


def steps() -> list[Any]:
    return [Step("a", reasoning="r", tool_calls=[("look", {"n": 1}), ("act", {})], usage=USAGE), "done"]


def engine_with(hook: EngineHook) -> Any:
    return make_engine(
        steps(),
        low={"look": lambda args: f"n={args['n']}"},
        high={"act": lambda args: 1},
        approver=lambda request: "deny",
        hook=hook,
    )


def test_the_callbacks_are_those_of_the_manual() -> None:
    assert METHODS == [
        "on_turn_start",
        "on_turn_end",
        "on_assistant_delta",
        "on_reasoning_delta",
        "on_assistant_message",
        "on_tool_proposed",
        "on_tool_started",
        "on_tool_finished",
        "on_permission_required",
        "on_iteration_end",
        "on_compacting",
        "on_compacted",
        "on_error",
        "on_retry",
        "on_interrupted",
        "on_event",
    ]


async def test_a_hook_hears_every_event_once_and_in_order() -> None:
    hook = Recorder()
    await play(engine_with(hook))
    assert hook.calls[:6] == [
        ("on_turn_start", ("go",)),
        ("on_event", ("llm_request", hook.calls[1][1][1])),
        ("on_reasoning_delta", ("r",)),
        ("on_assistant_delta", ("a",)),
        ("on_assistant_message", ("a", ["look", "act"], USAGE)),
        ("on_tool_proposed", ("look", {"n": 1})),
    ]
    assert hook.calls[6:12] == [
        ("on_tool_proposed", ("act", {})),
        ("on_tool_started", ("look",)),
        ("on_tool_finished", ("look", "ok", "n=1")),
        ("on_permission_required", ("act", "act acts outside of what only reads.")),
        ("on_tool_finished", ("act", "denied", hook.calls[10][1][2])),
        ("on_iteration_end", (1,)),
    ]
    assert hook.calls[-1] == ("on_turn_end", ("completed", 2, []))


@pytest.mark.parametrize("name", SHAPES)
def test_each_event_reaches_exactly_one_callback(name: str) -> None:
    hook = Recorder()
    event = EVENT_CLASSES[name](**SHAPES[name][0])
    notify(hook, event)
    (method, args) = hook.calls[0]
    assert len(hook.calls) == 1
    parameters = inspect.signature(getattr(EngineHook, method)).parameters
    assert len(args) <= len(parameters) - 1
    if method == "on_event":
        assert args == (name, event.data)


async def test_a_hook_that_raises_everywhere_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(EngineHook):
        pass

    def fail(self: Broken, *args: Any) -> None:
        raise RuntimeError("hook")

    for name in METHODS:
        setattr(Broken, name, fail)
    quiet = await play(engine_with(EngineHook()))
    events = await play(engine_with(Broken()))
    assert [event.type for event in events] == [event.type for event in quiet]
    assert "Broken.on_turn_end failed" in caplog.text


async def test_a_hook_that_mutates_what_it_gets_changes_nothing() -> None:
    class Vandal(EngineHook):
        def on_tool_proposed(self, name: str, args: Any) -> None:
            args.clear()
            args["n"] = 666

        def on_assistant_message(self, text: str, tool_calls: Any, usage: Any = None) -> None:
            tool_calls.clear()
            if usage:
                usage.clear()

        def on_turn_end(self, status: str, iterations: int, produced_files: Any) -> None:
            produced_files.append("forged")

        def on_event(self, type: str, data: Any) -> None:
            data.clear()

    events = await play(engine_with(Vandal()))
    assert of_type(events, "tool_proposed")[0].data["arguments"] == {"n": 1}
    assert of_type(events, "tool_finished")[0].data["result_preview"] == "n=1"
    assert of_type(events, "assistant_message")[0].data["tool_calls"] == ["look", "act"]
    assert of_type(events, "assistant_message")[0].data["usage"] == USAGE
    assert events[-1].data["produced_files"] == []
    assert of_type(events, "llm_request")[0].data["model"] == "scripted"


async def test_a_coroutine_as_a_hook_is_reported_and_not_left_waiting(caplog: pytest.LogCaptureFixture) -> None:
    class Async(EngineHook):
        async def on_turn_end(self, *args: Any) -> None:  # type: ignore[override]
            raise AssertionError

    await play(engine_with(Async()))
    assert "Async.on_turn_end is a coroutine function" in caplog.text


async def test_several_hooks_hear_the_same_though_one_fails(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(EngineHook):
        def on_turn_start(self, input: str) -> None:
            raise RuntimeError("hook")

    first, last = Recorder(), Recorder()
    hook = CompositeHook([first, Broken(), CompositeHook([last])])
    await play(engine_with(hook))
    assert first.calls == last.calls
    assert "on_turn_start" in first.names()
    assert "Broken.on_turn_start failed" in caplog.text
    hook.hooks.append(extra := Recorder())
    notify(hook, EVENT_CLASSES["iteration_end"](iteration=1, task_id="t"))
    assert extra.names() == ["on_iteration_end"]


def test_a_composite_forwards_every_callback() -> None:
    hook = Recorder()
    composite = CompositeHook([hook])
    for name in METHODS:
        count = len(inspect.signature(getattr(EngineHook, name)).parameters) - 1
        getattr(composite, name)(*range(count))
    assert hook.names() == METHODS
