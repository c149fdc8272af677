"""What the README and CONTRIBUTING show does what they say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
SAID = (
    "[list_files: ok]\nThis folder holds 1 entry: `program.py`.",
    "[exchange_rate: ok, 1.08]\nA euro buys 1.08 dollars.",
    "passed",
)


def run_program(source: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``source`` as a program in ``folder``, as someone who copied it from the README does."""
    (folder / "program.py").write_text(source, encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "ZQ_"))}
    return subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env=inherited | variables,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_there_is_an_expectation_for_every_program() -> None:
    assert len(PROGRAMS) == len(SAID) == README.count("```python")


@pytest.mark.parametrize(("number", "said"), list(enumerate(SAID)))
def test_program_runs_when_it_is_copied(tmp_path: Path, number: int, said: str) -> None:
    done = run_program(PROGRAMS[number], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout


def test_embedding_program_says_why_there_is_no_answer(tmp_path: Path) -> None:
    program = PROGRAMS[0].replace('model="demo"', 'model="other"')
    assert "OPENAI_API_KEY" in run_program(program, tmp_path).stdout
    nobody_listens = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_MAX_RETRIES": "0"}
    printed = run_program(program, tmp_path, NETWORK_RETRY_MAX="1", NETWORK_RETRY_BASE_MS="1", **nobody_listens).stdout
    assert printed.count("is void") == 1
    assert len(re.findall(r"^\[.*]$", printed, flags=re.MULTILINE)) == 2


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:OPENAI|ZQ|TOOL|NETWORK)_[A-Z_]+)`", README))))
def test_every_variable_in_the_readme_is_one_that_the_package_reads(name: str) -> None:
    package = REPOSITORY / "zq_notebook"
    assert any(f'"{name}"' in file.read_text(encoding="utf-8") for file in package.rglob("*.py"))


@pytest.mark.parametrize("command", re.findall(r"`\.venv/bin/pytest (.+?)`", CONTRIBUTING))
def test_every_example_of_running_one_test_selects_a_test(command: str) -> None:
    collect = [sys.executable, "-m", "pytest", *shlex.split(command), "--collect-only", "-q"]
    done = subprocess.run(collect, cwd=REPOSITORY, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
