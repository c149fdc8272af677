"""The manual's first script runs unchanged against any OpenAI-compatible server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.peers import StartAimock

SCRIPT = Path(__file__).with_name("manual_section4.py")


def run_script(workspace: Path, **environment: str) -> str:
    """What the script prints; it must end well and say nothing on standard error."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OPENAI_", "ZQ_"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SCRIPT)],
        cwd=workspace,
        env={**kept, "NO_PROXY": "*", "PYTHONPATH": str(SCRIPT.parents[2]), **environment},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"toolCalls": [{"id": call_id, "name": name, "arguments": arguments}]}


@pytest.mark.parametrize("api", ["", "responses", "chat"])
def test_the_script_reads_asks_writes_and_ends(start_aimock: StartAimock, tmp_path: Path, api: str) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    (workspace / "README.md").write_text("A project about penguins.\n")
    ask = call("c3", "ask_user", question="Write it down?", options=["Yes", "No"])
    base_url = start_aimock(
        [
            {"match": {"toolCallId": "c4"}, "response": {"content": "It is about penguins."}},
            {"match": {"toolCallId": "c3"}, "response": call("c4", "write_file", path="note.txt", content="penguins")},
            {"match": {"toolCallId": "c2"}, "response": ask},
            {"match": {"toolCallId": "c1"}, "response": call("c2", "read_file", path="README.md")},
            {"match": {"userMessage": "Read this project"}, "response": call("c1", "list_files", path=".")},
        ]
    )
    environment = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": base_url, "OPENAI_MODEL": "gpt-5"}
    if api:
        environment["OPENAI_FORCE_API_MODE"] = api
    printed = run_script(workspace, **environment)
    steps = [line for line in printed.splitlines() if line.strip()]
    assert steps == [
        "[tool] list_files",
        "[tool finished] list_files: ok",
        "[tool] read_file",
        "[tool finished] read_file: ok",
        "[tool] ask_user",
        "Model question: Write it down? ['Yes', 'No']",
        "[tool finished] ask_user: ok",
        "Approval required: write_file: write_file changes files in the workspace.",
        "{'path': 'note.txt', 'content': 'penguins'}",
        "[tool] write_file",
        "[tool finished] write_file: ok",
        "It is about penguins.",
        "[end] completed",
    ]
    assert (workspace / "note.txt").read_text() == "penguins"


def test_without_a_key_the_script_says_which_variable_to_set(tmp_path: Path) -> None:
    printed = run_script(tmp_path, OPENAI_MODEL="gpt-5")
    assert "[error] OPENAI_API_KEY is not set." in printed
    assert printed.rstrip().endswith("[end] error")
