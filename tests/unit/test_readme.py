"""What the README shows does what it says."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from zq_notebook import ScriptedProvider, Step, TurnEnd, create_default_engine

README = Path(__file__).parents[2] / "README.md"
EMBEDDING, TOOL, TESTING = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)


async def run(source: str, names: dict[str, Any]) -> None:
    """Run a cell's worth of code, with top-level await."""
    code = compile(source, str(README), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    made = eval(code, names)
    if inspect.isawaitable(made):
        await made


def test_embedding_example_is_a_program_that_runs(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(EMBEDDING, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "I only follow a script" in done.stdout


async def test_decorated_function_becomes_a_tool_the_model_can_call(tmp_path: Path) -> None:
    model = ScriptedProvider(
        [Step(tool_calls=[("exchange_rate", {"currency": "USD"})]), Step("That is 1.08.", expect="1.08")]
    )
    engine = create_default_engine(workspace=tmp_path, model="test", provider=model)
    await run(TOOL, {"engine": engine, "RATES": {"USD": 1.08}})
    with model:
        events = [event async for event in engine.run("How much is a dollar?")]
    assert isinstance(events[-1], TurnEnd)


async def test_scripted_model_example_plays_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    names: dict[str, Any] = {"folder": tmp_path}
    await run(TESTING, names)
    assert names["events"][-1].status == "completed"


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:OPENAI|ZQ|TOOL|NETWORK)_[A-Z_]+)`", README.read_text()))))
def test_every_variable_in_the_readme_is_one_that_the_package_reads(name: str) -> None:
    package = Path(__file__).parents[2] / "zq_notebook"
    assert any(f'"{name}"' in file.read_text(encoding="utf-8") for file in package.rglob("*.py"))
