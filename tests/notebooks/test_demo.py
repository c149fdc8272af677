"""``make demo``, from the installed package on: the transcript on the terminal, and where everything is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
QUICKSTART = REPOSITORY / "notebooks" / "01_quickstart.ipynb"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What ``make demo`` prints, and the folder it worked in."""
    folder = tmp_path_factory.mktemp("demo") / "run"
    # Settings of the person who runs the demo must not change it.
    environment = os.environ | {"OPENAI_MODEL": "other", "ZQ_UNATTENDED": "error"}
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / ".ci" / "demo.py"), str(folder)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, folder


@pytest.mark.timeout(120)
def test_demo_prints_the_transcript(demo: tuple[str, Path]) -> None:
    printed, _ = demo
    for part in (
        "scripted demo model",
        "inspect_variable orders",
        "Denied run_code: nobody is here to answer",
        "Allowed write_file once",
        "West fell by 44.8 %",
        "completed ['west.md']",
        "# Why West fell",
        "Is June complete?",
    ):
        assert part in printed, part


def test_demo_says_where_the_executed_notebook_is_and_what_comes_next(demo: tuple[str, Path]) -> None:
    printed, folder = demo
    assert f"The executed notebook is {folder / '01_quickstart.ipynb'}" in printed
    assert "make lab" in printed
    assert "OPENAI_API_KEY" in printed
    assert "%agent model NAME" in printed


def test_executed_notebook_has_outputs_and_a_plot(demo: tuple[str, Path]) -> None:
    _, folder = demo
    executed = json.loads((folder / "01_quickstart.ipynb").read_text(encoding="utf-8"))
    outputs = [output for cell in executed["cells"] for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not any(output["output_type"] == "error" for output in outputs)


def test_committed_notebook_shows_one_denied_and_one_allowed_approval() -> None:
    committed = json.loads(QUICKSTART.read_text(encoding="utf-8"))
    cells = {cell["id"]: json.dumps(cell.get("outputs", [])) for cell in committed["cells"]}
    assert "Denied run_code" in cells["look"]
    assert "largest fall: West" in cells["why"]
    assert "image/png" in cells["why"]
    assert "Allowed write_file once" in cells["file"]
