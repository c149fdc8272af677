"""What comes along with an import: nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import zq_notebook.engine

HEAVY = ["openai", "mcp", "ipywidgets", "anywidget", "pandas", "numpy", "IPython", "httpx", "httpx2", "genai_prices"]
HEAVY += ["markdown_it", "pygments", "tree_sitter", "pydantic", "fastjsonschema", "jupyter_client", "matplotlib"]
HEAVY += ["tomllib"]  # the languages are read when a turn needs them
MODULES = ["zq_notebook"] + [
    f"zq_notebook.engine.{path.stem}"
    for path in sorted(Path(zq_notebook.engine.__file__).parent.glob("*.py"))
    if path.stem != "__init__"
]


def loaded_after(code: str) -> set[str]:
    """The heavy packages that a fresh interpreter has after ``code``."""
    check = f"{code}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True, timeout=50)
    return set(eval(done.stdout))


@pytest.mark.parametrize("module", MODULES)
def test_engine_modules_import_nothing_heavy(module: str) -> None:
    assert loaded_after(f"import {module}") == set()


def test_looking_at_the_package_imports_nothing_heavy() -> None:
    assert loaded_after("import zq_notebook; dir(zq_notebook); zq_notebook.TurnEngine; zq_notebook.Mode") == set()
