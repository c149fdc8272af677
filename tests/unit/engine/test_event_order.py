"""What a turn yields, in which order, and what stands on the wire (Manual §9)."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.engine.play import make_engine, of_type, play, results, statuses, types, wire
from zq_notebook.engine.approval import ApprovalReply
from zq_notebook.engine.events import Event
from zq_notebook.permissions.decision import Mode
from zq_notebook.providers.scripted import Step

START = ("turn_start", {"taskId": "T", "input": "go"})


def request(number: int, messages: int, tools: int = 0) -> tuple[str, dict[str, Any]]:
    return (
        "llm_request",
        {
            "reqId": f"R{number}",
            "taskId": "T",
            "logTime": "TIME",
            "model": "scripted",
            "msgCount": messages,
            "toolCount": tools,
        },
    )


def reply(number: int, text: str = "", calls: tuple[str, ...] = (), **more: Any) -> tuple[str, dict[str, Any]]:
    data = {"text": text, "reasoning": "", "tool_calls": list(calls), "reqId": f"R{number}", "taskId": "T"}
    return "assistant_message", {**data, "logTime": "TIME", **more}


def delta(kind: str, text: str, number: int = 1) -> tuple[str, dict[str, Any]]:
    return f"{kind}_delta", {"text": text, "reqId": f"R{number}", "taskId": "T"}


def iteration(number: int) -> tuple[str, dict[str, Any]]:
    return "iteration_end", {"iteration": number, "taskId": "T"}


def end(status: str, iterations: int, files: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
    data = {"status": status, "iterations": iterations, "produced_files": list(files), "taskId": "T"}
    return "turn_end", data


def call(kind: str, call_id: str, name: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return kind, {"taskId": "T", "reqId": call_id, "name": name, **more}


async def test_text_only() -> None:
    engine = make_engine(["Hello world"])
    assert wire(await play(engine, task_id="T")) == [
        START,
        request(1, 2),
        delta("assistant", "Hello"),
        delta("assistant", " world"),
        reply(1, "Hello world"),
        iteration(1),
        end("completed", 1),
    ]
    assert engine.messages == [
        {"role": "system", "content": "You are a test."},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "Hello world"},
    ]


async def test_reasoning_and_usage() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14, "reasoning_tokens": 3}
    engine = make_engine([Step("yes", reasoning="hm well", usage=usage)])
    assert wire(await play(engine, task_id="T")) == [
        START,
        request(1, 2),
        delta("reasoning", "hm"),
        delta("reasoning", " well"),
        delta("assistant", "yes"),
        reply(1, "yes", reasoning="hm well", usage=usage),
        iteration(1),
        end("completed", 1),
    ]


async def test_a_low_risk_tool_runs_without_asking() -> None:
    steps = [Step("Look.", tool_calls=[("look", {"n": 1})]), Step("Done.", expect="n is 1")]
    engine = make_engine(steps, low={"look": lambda args: f"n is {args['n']}"})
    assert wire(await play(engine, task_id="T")) == [
        START,
        request(1, 2, 1),
        delta("assistant", "Look."),
        reply(1, "Look.", ("look",)),
        call("tool_proposed", "call_1", "look", arguments={"n": 1}),
        call("tool_started", "call_1", "look", startTime="TIME"),
        call("tool_finished", "call_1", "look", status="ok", duration="MS", result_preview="n is 1"),
        iteration(1),
        request(2, 4, 1),
        delta("assistant", "Done.", 2),
        reply(2, "Done."),
        iteration(2),
        end("completed", 2),
    ]
    assert engine.messages[2:4] == [
        {
            "role": "assistant",
            "content": "Look.",
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"n":1}'}}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "n is 1"},
    ]


def outcome(events: list[Event]) -> list[tuple[str, dict[str, Any]]]:
    """The events of the calls alone."""
    return [(kind, data) for kind, data in wire(events) if kind.startswith(("tool_", "permission_"))]


async def test_a_tool_that_raises_is_an_error_for_the_model_and_the_turn_goes_on() -> None:
    def bad(args: Any) -> str:
        raise ValueError("no such thing")

    engine = make_engine([Step("", tool_calls=[("bad", {})]), "Sorry."], low={"bad": bad})
    events = await play(engine, task_id="T")
    text = '{"error":"no such thing","error_type":"ValueError"}'
    assert outcome(events) == [
        call("tool_proposed", "call_1", "bad", arguments={}),
        call("tool_started", "call_1", "bad", startTime="TIME"),
        call("tool_finished", "call_1", "bad", status="error", duration="MS", result_preview=text),
    ]
    assert results(engine) == [text]
    assert wire(events)[-1] == end("completed", 2)


async def test_approval_comes_before_the_tool_starts() -> None:
    engine = make_engine([Step("", tool_calls=[("act", {"n": 2})]), "ok"], high={"act": lambda args: "acted"})
    engine.set_approver(lambda request: "once")
    reason = "act acts outside of what only reads."
    assert outcome(await play(engine, task_id="T")) == [
        call("tool_proposed", "call_1", "act", arguments={"n": 2}),
        call("permission_required", "call_1", "act", arguments={"n": 2}, reason=reason, category="test"),
        call("tool_started", "call_1", "act", startTime="TIME"),
        call("tool_finished", "call_1", "act", status="ok", duration="MS", result_preview="acted"),
    ]


async def test_a_denial_with_a_reason_reaches_the_model_and_the_stream() -> None:
    ran: list[Any] = []
    engine = make_engine([Step("", tool_calls=[("act", {})]), Step("ok", expect="not today")], high={"act": ran.append})
    engine.set_approver(lambda request: ApprovalReply("deny", reason="not today"))  # type: ignore[arg-type]
    events = await play(engine, task_id="T")
    assert [kind for kind, _ in outcome(events)] == ["tool_proposed", "permission_required", "tool_finished"]
    finished = of_type(events, "tool_finished")[0].data
    assert (finished["status"], finished["reason"]) == ("denied", "not today")
    assert "duration" not in finished
    assert ran == []


async def test_a_denial_without_a_reason_leaves_the_field_out() -> None:
    engine = make_engine([Step("", tool_calls=[("act", {})]), "ok"], high={"act": lambda args: 1})
    engine.set_approver(lambda request: "deny")
    finished = of_type(await play(engine), "tool_finished")[0].data
    assert finished["status"] == "denied"
    assert "reason" not in finished
    assert "denied" in results(engine)[0]


async def test_the_permission_engine_denies_without_asking() -> None:
    asked: list[Any] = []
    engine = make_engine([Step("", tool_calls=[("act", {})]), "ok"], high={"act": lambda args: 1}, mode=Mode.PLAN)
    engine.set_approver(asked.append)  # type: ignore[arg-type]
    events = await play(engine, task_id="T")
    reason = outcome(events)[1][1]["reason"]
    assert "plan mode" in reason
    assert outcome(events) == [
        call("tool_proposed", "call_1", "act", arguments={}),
        call("tool_finished", "call_1", "act", status="denied", reason=reason, result_preview=results(engine)[0]),
    ]
    assert reason in results(engine)[0]
    assert asked == []


async def test_an_unknown_tool_is_told_to_the_model() -> None:
    engine = make_engine(
        [Step("", tool_calls=[("lok", {})]), Step("ok", expect="Did you mean look")], low={"look": str}
    )
    events = await play(engine, task_id="T")
    assert [kind for kind, _ in outcome(events)] == ["tool_proposed", "tool_finished"]
    assert statuses(events) == ["error"]
    assert json.loads(results(engine)[0])["error_type"] == "UnknownToolError"


async def test_a_tool_that_is_switched_off_is_not_asked_about() -> None:
    asked: list[Any] = []
    engine = make_engine([Step("", tool_calls=[("act", {})]), "ok"], high={"act": lambda args: 1})
    engine.set_approver(asked.append)  # type: ignore[arg-type]
    engine.registry.disable("act")  # type: ignore[attr-defined]
    assert statuses(await play(engine)) == ["error"]
    assert "switched off" in results(engine)[0]
    assert asked == []


async def test_a_tool_is_called_though_the_registry_is_empty() -> None:
    engine = make_engine([Step("", tool_calls=[("look", {})]), "ok"])
    assert statuses(await play(engine)) == ["error"]
    assert "There is no tool called look" in results(engine)[0]


async def test_several_replies_keep_count() -> None:
    steps = [Step("", tool_calls=[("look", {"n": n})]) for n in range(3)]
    engine = make_engine([*steps, "done"], low={"look": lambda args: args["n"]})
    events = await play(engine)
    assert [event.data["iteration"] for event in of_type(events, "iteration_end")] == [1, 2, 3, 4]
    assert [event.data["msgCount"] for event in of_type(events, "llm_request")] == [2, 4, 6, 8]
    assert results(engine) == ["0", "1", "2"]


async def test_several_calls_are_all_proposed_before_the_first_runs() -> None:
    calls = [("look", {"n": 1}), ("act", {}), ("look", {"n": 2})]
    engine = make_engine([Step("", tool_calls=calls), "ok"], low={"look": str}, high={"act": str})
    engine.set_approver(lambda request: "once")
    events = await play(engine)
    assert types(events)[3:-6] == [
        "tool_proposed",
        "tool_proposed",
        "tool_proposed",
        "tool_started",
        "tool_finished",
        "permission_required",
        "tool_started",
        "tool_finished",
        "tool_started",
        "tool_finished",
    ]


async def test_what_a_tool_emits_stands_between_its_start_and_its_end() -> None:
    def ask(args: Any, ctx: Any) -> str:
        ctx.emit("ask_user_question", question="Which?", options=["a"], allow_text=False, multi=False)
        ctx.emit("plan_proposed", plan="1. look")
        ctx.emit("directory_requested", reason="data", path="/data", writable=True)
        ctx.record_file("out.csv")
        return "a"

    async def ask_in_the_loop(args: Any, ctx: Any) -> str:
        return ask(args, ctx)

    for tool in (ask, ask_in_the_loop):
        engine = make_engine([Step("", tool_calls=[("ask", {})]), "ok"], low={"ask": tool})
        seen = wire(await play(engine, task_id="T"))
        start = [kind for kind, _ in seen].index("tool_started")
        question = {"taskId": "T", "question": "Which?", "options": ["a"], "allowText": False, "multi": False}
        assert seen[start + 1 : start + 4] == [
            ("ask_user_question", question),
            ("plan_proposed", {"plan": "1. look"}),
            ("directory_requested", {"reason": "data", "path": "/data", "writable": True}),
        ]
        assert seen[start + 4][0] == "tool_finished"
        assert seen[-1] == end("completed", 2, ("out.csv",))


async def test_a_tool_cannot_forge_the_events_of_a_turn() -> None:
    def forge(args: Any, ctx: Any) -> str:
        ctx.emit("turn_end", status="completed", iterations=1, produced_files=[])
        return "not reached"

    engine = make_engine([Step("", tool_calls=[("forge", {})]), "ok"], low={"forge": forge})
    assert statuses(await play(engine)) == ["error"]
    assert "cannot emit turn_end" in results(engine)[0]


async def test_a_long_result_is_shown_in_part_and_given_to_the_model_whole() -> None:
    engine = make_engine([Step("", tool_calls=[("look", {})]), "ok"], low={"look": lambda args: "x" * 5000})
    events = await play(engine)
    assert len(of_type(events, "tool_finished")[0].data["result_preview"]) == 1000
    assert len(results(engine)[0]) == 5000
