"""The scripted demo model on a real engine, with real tools on the tutorial's real table."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest

from zq_notebook.engine.approval import ApprovalOutcome, ApprovalReply
from zq_notebook.engine.events import AssistantMessage, ErrorEvent, ToolFinished, TurnEnd
from zq_notebook.engine.history import problems
from zq_notebook.engine.turn import TurnEngine
from zq_notebook.permissions.decision import PermissionEngine, RiskClass
from zq_notebook.providers.demo import demo_provider
from zq_notebook.tools.files import register_read_only_file_tools
from zq_notebook.tools.registry import ToolMetadata, ToolRegistry

ORDERS = Path(__file__).parents[3] / "notebooks" / "data" / "orders.csv"
READ = ToolMetadata(category="kernel", risk_level="low", risk_class=RiskClass.READ)
EXECUTE = ToolMetadata(
    category="kernel",
    risk_level="high",
    capabilities=("execute",),
    requires_approval=True,
    risk_class=RiskClass.EXECUTE,
)

CLEAN = "What has to be cleaned before anything is calculated?"
EXPLAIN = "Clean it, find out which region lost revenue, and why."
WRITE = "Write what you found to out/west.md."
OPEN = "What did you not check?"
FOLDER = "What is in this folder?"


def schema(name: str, *arguments: str) -> dict[str, Any]:
    properties = {argument: {"type": "string"} for argument in arguments}
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(arguments)}}


class Workbench:
    """An engine whose tools work on a namespace that holds the orders."""

    def __init__(self, tmp_path: Path, *, with_tools: bool = True) -> None:
        mpl.use("agg")
        self.variables: dict[str, Any] = {"orders": pd.read_csv(ORDERS, parse_dates=["date"])}
        self.written: dict[str, str] = {}
        self.registry = registry = ToolRegistry()
        if with_tools:
            registry.register(lambda args: sorted(self.variables), READ, schema("list_variables"))
            registry.register(
                lambda args: str(self.variables[args["name"]].dtypes), READ, schema("inspect_variable", "name")
            )
            registry.register(self.run_code, EXECUTE, schema("run_code", "code"))
            registry.register(self.write_file, EXECUTE, schema("write_file", "path", "content"))
        self.engine = TurnEngine(
            provider=demo_provider(seconds_per_word=0),
            registry=registry,
            permissions=PermissionEngine(workspace_root=tmp_path),
            model="demo",
            instructions="You analyse data.",
        )
        self.tool_status: list[tuple[str, str]] = []
        self.allow()

    def allow(self) -> None:
        self.engine.set_approver(lambda request: ApprovalOutcome.ONCE)

    def deny(self, reason: str | None = None) -> None:
        self.engine.set_approver(lambda request: ApprovalReply(ApprovalOutcome.DENY, reason=reason))

    def run_code(self, args: Mapping[str, Any]) -> str:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(args["code"], self.variables)
        return output.getvalue()

    def write_file(self, args: Mapping[str, Any]) -> str:
        self.written[args["path"]] = args["content"]
        return f"Created {args['path']}: 9 lines, {len(args['content'])} bytes."

    async def ask(self, prompt: str) -> str:
        """The last thing the model says in this turn."""
        said, self.tool_status = "", []
        async for event in self.engine.run(prompt):
            assert not isinstance(event, ErrorEvent), event
            if isinstance(event, AssistantMessage):
                said = event.text
            elif isinstance(event, ToolFinished):
                self.tool_status.append((event.name, event.status))
            elif isinstance(event, TurnEnd):
                assert event.status == "completed"
        assert problems(self.engine.messages) == []
        return said


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


async def test_quickstart_conversation_reports_what_the_tools_really_found(bench: Workbench) -> None:
    found = await bench.ask(CLEAN)
    assert "**24 rows** stand in the table twice" in found
    assert "**31 rows** have no unit price" in found
    assert bench.tool_status == [("list_variables", "ok"), ("inspect_variable", "ok"), ("run_code", "ok")]

    explained = await bench.ask(EXPLAIN)
    assert "West fell by 44.8 % from the first quarter to the second, and desks explain most of it" in explained
    assert "55 of 1,577 rows were left out" in explained
    assert bench.tool_status == [("run_code", "ok")] * 3
    assert len(bench.variables["clean"]) == 1577 - 55

    assert "out/west.md" in await bench.ask(WRITE)
    assert "down 44.8 %" in bench.written["out/west.md"]
    assert "Is June complete?" in await bench.ask(OPEN)


async def test_other_data_gives_other_words(bench: Workbench) -> None:
    orders = bench.variables["orders"]
    bench.variables["orders"] = orders[(orders["region"] != "East") | (orders["date"] < "2026-04-15")]
    assert "**East fell by" in await bench.ask(EXPLAIN)


async def test_denied_count_is_admitted_and_not_guessed(bench: Workbench) -> None:
    bench.deny("not on this table")
    said = await bench.ask(CLEAN)
    assert bench.tool_status[-1] == ("run_code", "denied")
    assert "24" not in said
    assert "I will not guess" in said
    assert "I stop here" in await bench.ask(EXPLAIN)
    assert "nothing to write yet" in await bench.ask(WRITE)
    assert "nothing of it is checked" in await bench.ask(OPEN)

    bench.allow()
    assert "**24 rows**" in await bench.ask(CLEAN)


async def test_denied_report_is_not_claimed_to_be_written(bench: Workbench) -> None:
    await bench.ask(EXPLAIN)
    bench.deny()
    assert "was not written" in await bench.ask(WRITE)
    assert bench.written == {}


async def test_missing_table_ends_the_turn_without_a_claim(bench: Workbench) -> None:
    del bench.variables["orders"]
    assert "needs the table `orders`" in await bench.ask(EXPLAIN)
    assert bench.tool_status == [("run_code", "error")]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "Nothing is in this folder"),
        (["notes.txt"], "This folder holds 1 entry: `notes.txt`."),
        (["b.txt", "a/c.txt"], "This folder holds 2 entries: `a/`, `b.txt`."),
        ([f"{n}.txt" for n in range(9)], "This folder holds 9 entries: `0.txt`, "),
        ([f"{n}.txt" for n in range(9)], "`7.txt` and 1 more."),
        ([f"{n:04}.txt" for n in range(1200)], "This folder holds 1,200 entries: `0000.txt`, "),
    ],
)
async def test_folder_is_described_from_its_real_list(tmp_path: Path, names: list[str], said: str) -> None:
    folder = tmp_path / "folder"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x", encoding="utf-8")
    folder.mkdir(exist_ok=True)
    bench = Workbench(tmp_path)
    register_read_only_file_tools(bench.registry, folder)
    assert said in await bench.ask(FOLDER)
    assert bench.tool_status == [("list_files", "ok")]


async def test_folder_that_cannot_be_listed_is_not_described(bench: Workbench, tmp_path: Path) -> None:
    register_read_only_file_tools(bench.registry, tmp_path / "gone")
    assert "I do not know what is in it" in await bench.ask(FOLDER)
    assert bench.tool_status == [("list_files", "error")]


async def test_any_other_task_lists_variables_and_says_how_to_choose_a_model(bench: Workbench) -> None:
    said = await bench.ask("Translate this poem.")
    assert bench.tool_status == [("list_variables", "ok")]
    assert "OPENAI_API_KEY" in said
    assert "%agent model NAME" in said


async def test_engine_without_tools_still_gets_an_answer(tmp_path: Path) -> None:
    bench = Workbench(tmp_path, with_tools=False)
    for prompt in (CLEAN, EXPLAIN, WRITE, "Anything else?"):
        assert "follow a script" in await bench.ask(prompt)
        assert bench.tool_status == []


async def test_first_words_of_a_conversation_say_who_is_speaking(bench: Workbench) -> None:
    texts = []
    for _ in range(2):
        async for event in bench.engine.run(CLEAN):
            if isinstance(event, AssistantMessage):
                texts.append(event.text)
    assert ["scripted demo model" in text for text in texts] == [True] + [False] * 7


async def test_same_conversation_twice_is_word_for_word_the_same(tmp_path: Path) -> None:
    histories = []
    for _ in range(2):
        bench = Workbench(tmp_path)
        for prompt in (CLEAN, EXPLAIN, WRITE):
            await bench.ask(prompt)
        histories.append([dict(message) for message in bench.engine.messages])
    assert histories[0] == histories[1]
