"""What a search leaves out, and when it gives up."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from zq_notebook.toolio import ToolContext, ToolOutput
from zq_notebook.tools import search
from zq_notebook.tools.files import register_file_tools
from zq_notebook.tools.registry import ToolRegistry


@pytest.fixture(params=["ripgrep", "python"])
def registry(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ToolRegistry:
    if request.param == "python":
        monkeypatch.setenv("PATH", "")
    registry = ToolRegistry()
    search.register_search_tool(registry, tmp_path)
    register_file_tools(registry, tmp_path)
    return registry


async def call(registry: ToolRegistry, name: str, **arguments: object) -> ToolOutput:
    return await registry.call(name, arguments, ToolContext())


async def test_the_agents_own_files_are_found_only_by_who_names_them(registry: ToolRegistry, tmp_path: Path) -> None:
    saved = tmp_path / ".agent" / "tool-results" / "run_shell-1.txt"
    saved.parent.mkdir(parents=True)
    saved.write_text("needle\n")
    (tmp_path / "hay.txt").write_text("needle\n")
    assert ".agent" not in (await call(registry, "grep", pattern="needle")).text
    assert ".agent" not in (await call(registry, "list_files")).text
    for place in (".agent", ".agent/tool-results", ".agent/tool-results/run_shell-1.txt"):
        assert "run_shell-1.txt:1:needle" in (await call(registry, "grep", pattern="needle", path=place)).text
    assert "needle" in (await call(registry, "read_file", path=".agent/tool-results/run_shell-1.txt")).text


async def test_a_search_that_takes_too_long_ends_and_says_so(
    registry: ToolRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MAX_SECONDS", 0.2)
    begun = time.monotonic()
    output = await call(registry, "grep", pattern="no such text anywhere", path=os.sep)
    assert not output.ok
    assert "smaller directory" in output.text
    assert time.monotonic() - begun < 10
