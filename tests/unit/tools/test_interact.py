"""Asking the person: whose handler is called, with what, and what happens when there is nobody (Manual §7.1)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from zq_notebook.toolio import ToolContext
from zq_notebook.tools import interact
from zq_notebook.tools.registry import ToolRegistry


@pytest.fixture(autouse=True)
def _no_handlers() -> Iterator[None]:
    yield
    interact.set_question_handler(None)
    interact.set_plan_handler(None)
    interact.set_directory_handler(None)


@pytest.fixture
def registry() -> ToolRegistry:
    made = ToolRegistry()
    interact.register_ask_tool(made)
    interact.register_plan_tool(made)
    interact.register_directory_tool(made)
    return made


class Events(list[tuple[str, dict[str, Any]]]):
    def __call__(self, event_type: str, /, **fields: Any) -> None:
        self.append((event_type, fields))


ASK = {"question": "Which?", "options": ["a", "b"], "allow_text": False, "multi": True}


def test_tools_are_low_risk_and_never_run_beside_others(registry: ToolRegistry) -> None:
    assert registry.names() == ["ask_user", "propose_plan", "request_directory"]
    for name in registry.names():
        spec = registry.get(name)
        assert spec is not None
        assert (spec.metadata.risk_level, spec.metadata.requires_approval, spec.metadata.interactive) == (
            "low",
            False,
            True,
        )
        assert not spec.concurrent


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
async def test_handler_gets_positional_arguments_and_its_answer_is_the_result(
    registry: ToolRegistry, kind: str
) -> None:
    asked: list[tuple[Any, ...]] = []

    def plain(question: str, options: list[str], allow_text: bool, multi: bool, /) -> list[str]:
        asked.append((question, options, allow_text, multi))
        return ["a", "b"]

    async def later(question: str, options: list[str], allow_text: bool, multi: bool, /) -> list[str]:
        return plain(question, options, allow_text, multi)

    interact.set_question_handler(plain if kind == "plain" else later)
    events = Events()
    output = await registry.call("ask_user", ASK, ToolContext(emit=events))
    assert asked == [("Which?", ["a", "b"], False, True)]
    assert (output.ok, output.text) == (True, '["a","b"]')
    assert events == [("ask_user_question", ASK)]


async def test_defaults_let_the_user_type(registry: ToolRegistry) -> None:
    interact.set_question_handler(lambda *arguments: repr(arguments))
    assert (await registry.call("ask_user", {"question": "Why?"}, ToolContext())).text == "('Why?', [], True, False)"
    # Without options there would be no way to answer at all.
    output = await registry.call("ask_user", {"question": "Why?", "allow_text": False}, ToolContext())
    assert output.text == "('Why?', [], True, False)"


async def test_engines_own_handler_wins(registry: ToolRegistry) -> None:
    interact.set_question_handler(lambda *arguments: "process")
    ctx = ToolContext(handlers={"question": lambda *arguments: "engine"})
    assert (await registry.call("ask_user", ASK, ctx)).text == "engine"
    assert (await registry.call("ask_user", ASK, ToolContext())).text == "process"


async def test_without_a_handler_the_model_is_told_that_nobody_can_answer(registry: ToolRegistry) -> None:
    for name, args in (
        ("ask_user", ASK),
        ("propose_plan", {"plan": "1. x"}),
        ("request_directory", {"path": "/x", "reason": "r"}),
    ):
        output = await registry.call(name, args, ToolContext())
        assert (output.ok, output.error_type) == (False, "NobodyToAskError")
        assert "Nobody can answer" in json.loads(output.text)["error"]


@pytest.mark.parametrize("answer", [None, "", []])
async def test_no_answer_is_said_to_be_none(registry: ToolRegistry, answer: Any) -> None:
    interact.set_question_handler(lambda *arguments: answer)
    assert (await registry.call("ask_user", ASK, ToolContext())).text == "The user gave no answer."


async def test_failing_handler_is_an_error_of_the_tool(registry: ToolRegistry) -> None:
    def fails(*arguments: Any) -> str:
        raise RuntimeError("the dialog is gone")

    interact.set_question_handler(fails)
    output = await registry.call("ask_user", ASK, ToolContext())
    assert (output.ok, output.error_type) == (False, "RuntimeError")


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
async def test_stopping_the_turn_ends_the_wait(registry: ToolRegistry, kind: str) -> None:
    asked = threading.Event()
    answered = threading.Event()

    def plain(*arguments: Any) -> str:
        asked.set()
        answered.wait(30)
        return "late"

    async def later(*arguments: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "never"

    interact.set_question_handler(plain if kind == "plain" else later)
    ctx = ToolContext()
    waiting = asyncio.create_task(registry.call("ask_user", ASK, ctx))
    await asyncio.to_thread(asked.wait, 5)
    ctx.cancel.set()
    output = await asyncio.wait_for(waiting, 5)
    answered.set()
    assert (output.ok, output.error_type) == (False, "InterruptedError")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (True, "approved the plan"),
        (False, "did not approve"),
        (None, "did not approve"),
        ("only step 1", "only step 1"),
    ],
)
async def test_plan_decision(registry: ToolRegistry, answer: Any, says: str) -> None:
    seen: list[Any] = []

    def decide(plan: str) -> Any:
        seen.append(plan)
        return answer

    interact.set_plan_handler(decide)
    events = Events()
    output = await registry.call("propose_plan", {"plan": "1. x"}, ToolContext(emit=events))
    assert says in output.text
    assert seen == ["1. x"]
    assert events == [("plan_proposed", {"plan": "1. x"})]


async def test_directory_decision(registry: ToolRegistry) -> None:
    seen: list[Any] = []

    async def decide(reason: str, path: str, writable: bool) -> bool:
        seen.append((reason, path, writable))
        return True

    interact.set_directory_handler(decide)
    events = Events()
    output = await registry.call("request_directory", {"path": "/data", "reason": "input"}, ToolContext(emit=events))
    assert output.text == "The user gave access to /data for reading."
    assert seen == [("input", "/data", False)]
    assert events == [("directory_requested", {"reason": "input", "path": "/data", "writable": False})]
