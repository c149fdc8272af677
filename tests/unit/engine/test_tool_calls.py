"""Which calls run beside each other, in which order results go back, what a call may look like (Manual §12.6)."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from typing import Any

import pytest

from tests.unit.engine.play import Chunks, check_history, make_engine, of_type, play, results, statuses
from zq_notebook.engine.messages import StreamChunk, TokenUsage, ToolCall
from zq_notebook.errors import ToolError
from zq_notebook.permissions.decision import Decision
from zq_notebook.providers.scripted import ScriptedProvider, Step
from zq_notebook.toolio import ImageData, ToolOutput


async def test_eight_low_risk_tools_run_at_the_same_time() -> None:
    together = threading.Barrier(8)

    def wait(args: Any) -> str:
        together.wait(timeout=20)
        return "met"

    engine = make_engine([Step("", tool_calls=[("wait", {"n": n}) for n in range(8)]), "ok"], low={"wait": wait})
    assert statuses(await play(engine)) == ["ok"] * 8


async def test_eight_blocking_tools_of_50_ms_take_little_more_than_one() -> None:
    def block(args: Any) -> str:
        threading.Event().wait(0.05)
        return "x"

    engine = make_engine([Step("", tool_calls=[("block", {})] * 8), "ok"], low={"block": block})
    begun = time.perf_counter()
    await play(engine)
    assert time.perf_counter() - begun < 0.3


async def test_results_go_back_in_the_models_order_whoever_finishes_first() -> None:
    ended = [asyncio.Event() for _ in range(3)]

    async def wait(args: dict[str, Any]) -> str:
        n = args["n"]
        if n < 2:
            await ended[n + 1].wait()
        ended[n].set()
        return f"result {n}"

    engine = make_engine([Step("", tool_calls=[("wait", {"n": n}) for n in range(3)]), "ok"], low={"wait": wait})
    events = await play(engine)
    assert [event.data["reqId"] for event in of_type(events, "tool_finished")] == ["call_3", "call_2", "call_1"]
    assert results(engine) == ["result 0", "result 1", "result 2"]


async def test_high_risk_tools_run_one_at_a_time_in_the_models_order() -> None:
    log: list[str] = []

    async def act(args: dict[str, Any]) -> None:
        log.append(f"start {args['n']}")
        await asyncio.sleep(0)
        log.append(f"end {args['n']}")

    engine = make_engine([Step("", tool_calls=[("act", {"n": n}) for n in range(3)]), "ok"], high={"act": act})
    engine.set_approver(lambda request: log.append(f"ask {request.arguments['n']}") or "once")  # type: ignore[func-returns-value]
    await play(engine)
    assert log == [f"{what} {n}" for n in range(3) for what in ("ask", "start", "end")]


async def test_low_risk_tools_wait_for_a_high_risk_one_between_them() -> None:
    log: list[str] = []
    calls = [("low", {"n": 1}), ("high", {}), ("low", {"n": 2})]
    engine = make_engine(
        [Step("", tool_calls=calls), "ok"],
        low={"low": lambda args: log.append(f"low {args['n']}")},
        high={"high": lambda args: log.append("high")},
    )
    engine.set_approver(lambda request: log.append("asked") or "once")  # type: ignore[func-returns-value]
    await play(engine)
    assert log == ["low 1", "asked", "high", "low 2"]


async def test_a_low_risk_tool_that_has_to_be_asked_about_runs_alone() -> None:
    waiting = 0
    most = 0

    async def approve(request: Any) -> str:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(0)
        waiting -= 1
        return "once"

    engine = make_engine([Step("", tool_calls=[("look", {})] * 3), "ok"], low={"look": lambda args: 1})
    engine.set_approver(approve)

    class Strict:
        def evaluate(self, *args: Any) -> Decision:
            return Decision(allowed=False, reason="always asks", needs_user=True)

        def allow_tool_for_session(self, name: str) -> None: ...
        def allow_command_for_session(self, command: str) -> None: ...

    engine.permissions = Strict()
    assert statuses(await play(engine)) == ["ok"] * 3
    assert most == 1


async def test_a_permission_engine_that_breaks_lets_nothing_through(caplog: pytest.LogCaptureFixture) -> None:
    ran: list[Any] = []
    engine = make_engine([Step("", tool_calls=[("look", {}), ("look", {})]), "ok"], low={"look": ran.append})

    class Broken:
        def evaluate(self, *args: Any) -> Decision:
            raise RuntimeError("rules cannot be read")

        def allow_tool_for_session(self, name: str) -> None: ...
        def allow_command_for_session(self, command: str) -> None: ...

    engine.permissions = Broken()
    assert statuses(await play(engine)) == ["error", "error"]
    assert "rules cannot be read" in results(engine)[0]
    assert ran == []


@pytest.mark.parametrize(
    "arguments", ["null", "[]", '"text"', "7", '{"n": 1', "{not json", '{"n": "one"}', "\ud800", '{"n": NaN}']
)
async def test_arguments_that_are_no_object_or_do_not_fit_never_run_a_tool(arguments: str) -> None:
    ran: list[Any] = []
    engine = make_engine([Step("", tool_calls=[("look", arguments)]), "ok"], low={"look": ran.append})
    events = await play(engine)
    assert statuses(events) == ["error"]
    assert json.loads(results(engine)[0])["error_type"] == "ToolArgumentError"
    assert of_type(events, "tool_started") == []
    assert ran == []


async def test_arguments_that_only_a_lenient_reader_understands_are_asked_about_like_all_others() -> None:
    ran: list[Any] = []
    asked: list[Any] = []
    engine = make_engine([Step("", tool_calls=[("act", '{"path": "cut \\ud83d"}')]), "ok"], high={"act": ran.append})
    engine.set_approver(lambda request: asked.append(request.arguments) or "deny")  # type: ignore[func-returns-value]
    events = await play(engine)
    assert asked == [{"path": "cut \ufffd"}]
    assert of_type(events, "tool_proposed")[0].data["arguments"] == {"path": "cut \ufffd"}
    assert statuses(events) == ["denied"]
    assert ran == []


async def test_what_is_asked_about_is_what_the_tool_gets() -> None:
    seen: list[Any] = []
    engine = make_engine([Step("", tool_calls=[("act", '{"n": "3", "path": null}')]), "ok"], high={"act": seen.append})
    engine.set_approver(lambda request: seen.append(dict(request.arguments)) or "once")  # type: ignore[func-returns-value]
    await play(engine)
    assert seen == [{"n": 3}, {"n": 3}]


async def test_a_megabyte_of_arguments_arrives_whole() -> None:
    text = "é" * 1_000_000
    engine = make_engine(
        [Step("", tool_calls=[("look", {"path": text})]), "ok"], low={"look": lambda a: len(a["path"])}
    )
    await play(engine)
    assert results(engine) == ["1000000"]


async def test_deeply_nested_arguments_are_an_error_and_not_a_crash() -> None:
    engine = make_engine([Step("", tool_calls=[("look", "[" * 100_000)]), "ok"], low={"look": str})
    assert statuses(await play(engine)) == ["error"]


@pytest.mark.parametrize("ids", [["c", "c"], ["", ""], ["c", ""], ["c_2", "c", "c"]])
async def test_ids_that_are_missing_or_equal_in_one_reply_are_told_apart(ids: list[str]) -> None:
    calls = [ToolCall(call_id, "look", json.dumps({"n": n})) for n, call_id in enumerate(ids)]
    provider = Chunks([StreamChunk(tool_calls=calls)], [StreamChunk(content="ok", finish_reason="stop")])
    engine = make_engine(provider, low={"look": lambda args: args["n"]})
    await play(engine)
    assert results(engine) == [str(n) for n in range(len(ids))]


async def test_an_id_that_comes_again_in_a_later_reply_is_told_apart() -> None:
    step = Step("", tool_calls=[ToolCall("call_0", "look", "{}")])
    engine = make_engine([step, step, step, "ok"], low={"look": lambda args: 1})
    events = await play(engine)
    ids = [event.data["reqId"] for event in of_type(events, "tool_finished")]
    assert ids[0] == "call_0"
    assert len(set(ids)) == 3
    assert [m["tool_call_id"] for m in engine.messages if m["role"] == "tool"] == ids


async def test_an_id_of_the_restored_history_is_not_used_again() -> None:
    old = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": [ToolCall("call_0", "look", "{}").to_message()]},
        {"role": "tool", "tool_call_id": "call_0", "content": "old"},
    ]
    engine = make_engine(
        [Step("", tool_calls=[ToolCall("call_0", "look", "{}")]), "ok"], low={"look": lambda args: "new"}, messages=old
    )
    assert of_type(await play(engine), "tool_finished")[0].data["reqId"] != "call_0"
    assert results(engine) == ["old", "new"]


async def test_a_tool_that_is_cancelled_from_within_is_an_error_of_that_tool() -> None:
    async def gives_up(args: Any) -> None:
        raise asyncio.CancelledError("inner scope")

    async def waits_for_cancelled(args: Any) -> None:
        inner = asyncio.ensure_future(asyncio.sleep(60))
        inner.cancel()
        await inner

    for tool in (gives_up, waits_for_cancelled):
        engine = make_engine([Step("", tool_calls=[("bad", {}), ("look", {})]), "ok"], low={"bad": tool, "look": str})
        events = await play(engine)
        assert sorted(statuses(events)) == ["error", "ok"]
        assert json.loads(results(engine)[0])["error_type"] == "CancelledError"
        assert events[-1].data["status"] == "completed"


@pytest.mark.parametrize("error", [KeyboardInterrupt("k"), SystemExit(3), StopIteration(1), StopAsyncIteration(2)])
async def test_no_exception_of_a_tool_ends_the_turn(error: BaseException) -> None:
    def sync(args: Any) -> None:
        raise error

    async def coroutine(args: Any) -> None:
        raise error

    tools = {"sync": sync, "coroutine": coroutine}
    engine = make_engine([Step("", tool_calls=[("sync", {}), ("coroutine", {})]), "ok"], low=tools)
    events = await play(engine)
    assert statuses(events) == ["error", "error"]
    assert events[-1].data["status"] == "completed"


async def test_a_returned_error_counts_as_one() -> None:
    def refuse(args: Any) -> Any:
        return {"error": "no rows", "hint": "check the filter"}

    def complain(args: Any) -> Any:
        raise ToolError("say it plainly")

    engine = make_engine([Step("", tool_calls=[("a", {}), ("b", {})]), "ok"], low={"a": refuse, "b": complain})
    assert statuses(await play(engine)) == ["error", "error"]
    assert json.loads(results(engine)[0])["hint"] == "check the filter"
    assert json.loads(results(engine)[1])["error"] == "say it plainly"


async def test_pictures_of_a_tool_reach_the_model_and_are_stripped_after_the_turn() -> None:
    def plot(args: Any) -> ToolOutput:
        return ToolOutput(text="a plot", images=(ImageData(b"png"),), summary="plot")

    provider = ScriptedProvider([Step("", tool_calls=[("plot", {})]), "nice"])
    engine = make_engine(provider, low={"plot": plot})
    events = await play(engine)
    sent = provider.requests[1].messages[-1]["content"]
    assert sent == [
        {"type": "text", "text": "a plot"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}},
    ]
    assert results(engine) == ["a plot\n[Images shown earlier: 1]"]
    finished = of_type(events, "tool_finished")[0]
    assert finished.output.summary == "plot"  # type: ignore[attr-defined]
    assert "output" not in finished.data


async def test_a_tool_added_during_the_turn_can_be_called() -> None:
    def install(args: Any) -> str:
        schema = {"name": "fresh", "parameters": {"type": "object", "properties": {}}}
        engine.registry.register(lambda a: "works", {"category": "t", "riskLevel": "low"}, schema)  # type: ignore[attr-defined]
        return "installed"

    steps = [Step("", tool_calls=[("install", {})]), Step("", tool_calls=[("fresh", {})]), "ok"]
    engine = make_engine(steps, low={"install": install})
    await play(engine)
    assert results(engine) == ["installed", "works"]


async def test_requests_begin_with_the_same_bytes_from_one_to_the_next() -> None:
    provider = ScriptedProvider([Step("", tool_calls=[("look", {"n": n}), ("bad", "[")]) for n in range(4)] + ["done"])
    engine = make_engine(provider, low={"look": lambda args: args["n"], "bad": str})
    await play(engine)
    provider.steps.append("again")
    await play(engine)
    sent = [json.dumps(request.messages)[:-1] for request in provider.requests]
    for earlier, later in itertools.pairwise(sent):
        assert later.startswith(earlier)
    assert len({json.dumps(request.tools) for request in provider.requests}) == 1


async def test_a_stream_that_reports_tokens_after_its_end_has_ended() -> None:
    usage = TokenUsage(prompt_tokens=5)
    late = [StreamChunk(content="x"), StreamChunk(finish_reason="stop"), StreamChunk(usage=usage)]
    engine = make_engine(Chunks(late))
    assert (await play(engine))[-1].data["status"] == "completed"
    check_history(engine)
