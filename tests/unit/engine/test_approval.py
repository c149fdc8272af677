"""Approvers of every kind, and what each answer leads to (Manual §8.3, §21)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.engine.play import check_turn, drain, make_engine, of_type, play, results, statuses
from zq_notebook.engine.approval import ApprovalOutcome, ApprovalReply, PermissionRequest
from zq_notebook.engine.events import Event
from zq_notebook.engine.turn import TurnEngine
from zq_notebook.errors import AgentError, ApproverMissingError, UsageError
from zq_notebook.permissions.decision import PermissionEngine
from zq_notebook.providers.scripted import Step
from zq_notebook.tools.registry import ToolRegistry

ACT = Step("", tool_calls=[("act", {"n": 1})])
TWICE = [ACT, ACT, "done"]


def acting(steps: list[Any], approver: Any = None) -> tuple[TurnEngine, list[Any]]:
    ran: list[Any] = []
    return make_engine(steps, high={"act": ran.append}, approver=approver), ran


@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        (ApprovalOutcome.ONCE, 1),
        ("once", 1),
        ("always_tool", 1),
        (ApprovalReply(ApprovalOutcome.ONCE), 1),
        (ApprovalReply("once"), 1),  # type: ignore[arg-type]
        (ApprovalOutcome.DENY, 0),
        ("deny", 0),
        (ApprovalReply(ApprovalOutcome.DENY), 0),
        (ApprovalReply("deny"), 0),  # type: ignore[arg-type]
    ],
)
@pytest.mark.parametrize("coroutine", [False, True])
async def test_answers_in_every_form(answer: Any, runs: int, coroutine: bool) -> None:
    async def later(request: PermissionRequest) -> Any:
        await asyncio.sleep(0)
        return answer

    engine, ran = acting([ACT, "done"], later if coroutine else lambda request: answer)
    assert statuses(await play(engine)) == ["ok" if runs else "denied"]
    assert len(ran) == runs


async def test_approver_may_return_a_future() -> None:
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    answer.set_result("once")
    engine, ran = acting([ACT, "done"], lambda request: answer)
    await play(engine)
    assert len(ran) == 1


async def test_once_asks_again_and_always_does_not() -> None:
    for answer, questions in (("once", 2), ("always_tool", 1), ("always_command", 2)):
        asked: list[PermissionRequest] = []
        engine, ran = acting(TWICE, lambda request, a=answer, q=asked: q.append(request) or a)
        events = await play(engine)
        assert len(asked) == len(of_type(events, "permission_required")) == questions
        assert len(ran) == 2


async def test_always_this_tool_counts_within_the_same_reply() -> None:
    asked: list[Any] = []
    engine, ran = acting(
        [Step("", tool_calls=[("act", {})] * 3), "done"], lambda request: asked.append(request) or "always_tool"
    )
    await play(engine)
    assert (len(asked), len(ran)) == (1, 3)


async def test_always_this_command_is_remembered_by_its_program() -> None:
    asked: list[str] = []
    registry = ToolRegistry()
    schema = {"name": "run_shell", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}
    registry.register(lambda args: "out", {"category": "shell", "riskLevel": "high"}, schema)
    commands = ["git status", "git log", "make", "git log; make"]
    engine = make_engine([Step("", tool_calls=[("run_shell", {"command": c})]) for c in commands] + ["done"])
    engine.registry = registry
    engine.permissions = PermissionEngine()
    engine.set_approver(lambda request: asked.append(request.arguments["command"]) or "always_command")  # type: ignore[func-returns-value]
    await play(engine)
    assert asked == ["git status", "make", "git log; make"]


async def test_the_request_says_what_will_run() -> None:
    seen: list[PermissionRequest] = []
    engine, _ = acting([ACT, "done"], lambda request: seen.append(request) or "deny")
    events = await play(engine)
    (request,) = seen
    assert request.tool_name == "act"
    assert request.arguments == {"n": 1}
    assert request.tool_call_id == of_type(events, "tool_proposed")[0].data["reqId"]
    assert request.reason == of_type(events, "permission_required")[0].data["reason"]
    assert request.metadata.category == "test"


async def test_changing_the_arguments_in_an_approver_or_event_changes_nothing() -> None:
    def approve(request: PermissionRequest) -> str:
        request.arguments["n"] = 99  # type: ignore[index]
        return "once"

    engine, ran = acting([ACT, "done"], approve)
    async for event in engine.run("go"):
        if event.type in ("tool_proposed", "permission_required"):
            event.data["arguments"]["n"] = 77
    assert ran == [{"n": 1}]


async def test_permission_required_was_consumed_before_the_approver_is_called() -> None:
    log: list[str] = []
    engine, _ = acting([ACT, "done"], lambda request: log.append("asked") or "once")
    async for event in engine.run("go"):
        if event.type == "permission_required":
            # A consumer that takes its time, with the loop running on.
            for _ in range(20):
                await asyncio.sleep(0)
            log.append("consumed")
        elif event.type == "tool_started":
            log.append("started")
    assert log == ["consumed", "asked", "started"]


async def collect(engine: TurnEngine) -> tuple[list[Event], BaseException | None]:
    events: list[Event] = []
    try:
        async for event in engine.run("go"):
            events.append(event)
    except BaseException as error:
        return events, error
    return events, None


BOTH = Step("", tool_calls=[("look", {}), ("act", {}), ("act", {})])


async def test_without_an_approver_the_error_comes_out_after_turn_end() -> None:
    engine = make_engine([BOTH, "next"], low={"look": lambda args: 1}, high={"act": lambda args: 1})
    events, error = await collect(engine)
    assert isinstance(error, ApproverMissingError)
    assert "set_approver" in str(error)
    check_turn(events, engine)
    assert statuses(events) == ["ok", "denied", "denied"]
    assert of_type(events, "error")[0].data["error_type"] == "ApproverMissingError"
    assert of_type(events, "error")[0].data["retriable"] is False
    assert events[-1].data["status"] == "error"
    assert "nobody could be asked" in results(engine)[1]
    assert await drain(engine.retry()) == []
    await play(engine)


class Boom(Exception):
    pass


@pytest.mark.parametrize("error", [Boom("no"), KeyboardInterrupt(), SystemExit(2)])
@pytest.mark.parametrize("coroutine", [False, True])
async def test_what_an_approver_raises_comes_out_after_turn_end(error: BaseException, coroutine: bool) -> None:
    def fail(request: PermissionRequest) -> str:
        raise error

    async def fail_later(request: PermissionRequest) -> str:
        await asyncio.sleep(0)
        raise error

    engine, ran = acting([ACT, "next"], fail_later if coroutine else fail)
    events, raised = await collect(engine)
    assert raised is error
    check_turn(events, engine)
    assert ran == []
    await play(engine)


@pytest.mark.parametrize("answer", [None, True, 1, "", "yes", "allow", {"outcome": "once"}, ApprovalReply("maybe")])  # type: ignore[arg-type]
async def test_an_answer_that_is_none_runs_nothing_and_says_what_would_be_one(answer: Any) -> None:
    engine, ran = acting([ACT, "next"], lambda request: answer)
    events, raised = await collect(engine)
    assert isinstance(raised, UsageError)
    assert "once, always_tool, always_command, deny" in str(raised)
    check_turn(events, engine)
    assert ran == []
    await play(engine)


async def test_an_approver_that_is_cancelled_does_not_cancel_the_consumer() -> None:
    pending: list[asyncio.Future[str]] = []

    async def wait(request: PermissionRequest) -> str:
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        pending.append(answer)
        asyncio.get_running_loop().call_soon(answer.cancel)
        return await answer

    engine, ran = acting([ACT, "next"], wait)
    events, raised = await collect(engine)
    assert isinstance(raised, AgentError)
    assert "cancelled before it answered for act" in str(raised)
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]
    check_turn(events, engine)
    assert ran == []
    await play(engine)


async def test_the_approver_may_be_changed_while_the_turn_runs() -> None:
    engine, ran = acting(TWICE, lambda request: "deny")
    async for event in engine.run("go"):
        if event.type == "iteration_end":
            engine.set_approver(lambda request: "once")
    assert len(ran) == 1
