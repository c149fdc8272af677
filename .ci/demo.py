"""Run the quickstart notebook headless and print what happens: ``demo.py [FOLDER]``, by default ``.demo``.

The notebooks are copied to FOLDER first, so that the ones in the repository stay as they are.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

REPOSITORY = Path(__file__).resolve().parent.parent
NOTEBOOK = "01_quickstart.ipynb"
CELL_TIMEOUT = 120  # seconds


def main() -> int:
    """Execute, print, and say where everything is. Returns the exit status."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY / ".demo"
    path = prepare(folder)
    document = nbformat.read(path, as_version=4)
    client = NotebookClient(
        document,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        resources={"metadata": {"path": str(folder)}},
        on_cell_executed=lambda cell, **_: print_cell(cell),
    )
    print("Running the quickstart on the scripted model: its words are canned, its tools are real.", flush=True)
    try:
        client.execute(env=kernel_environment())
    except CellExecutionError as error:
        print(f"\nThe demo failed:\n{error}", file=sys.stderr)
        return 1
    finally:
        nbformat.write(document, path)
    print(farewell(path))
    return 0


def prepare(folder: Path) -> Path:
    """A fresh copy of the notebooks in ``folder``; the path of the one to run."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(REPOSITORY / "notebooks", folder, ignore=shutil.ignore_patterns("out", ".*", "__pycache__"))
    return folder / NOTEBOOK


def kernel_environment() -> dict[str, str]:
    """The environment without what would change the demo: a model, a key, an unattended policy."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "ZQ_"))}


def print_cell(cell: NotebookNode) -> None:
    """Source and outputs of one executed cell, as text."""
    if cell.cell_type != "code":
        return
    prompt = f"In [{cell.execution_count}]: "
    print(f"\n{prompt}{indent(cell.source, len(prompt))}", flush=True)
    for output in cell.outputs:
        text = output_text(output).rstrip("\n")
        if text:
            print(f"\n{text}", flush=True)


def output_text(output: NotebookNode) -> str:
    """The plain text of one output."""
    if output.output_type == "stream":
        return str(output.text)
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    return str(output.data.get("text/plain", ""))


def indent(text: str, width: int) -> str:
    """``text`` with every line but the first moved in by ``width``."""
    return text.replace("\n", "\n" + " " * width)


def farewell(path: Path) -> str:
    """Where the executed notebook is, and what to do next."""
    try:
        shown = path.relative_to(Path.cwd())
    except ValueError:
        shown = path
    return f"""
The executed notebook is {shown}
To run it live, with an approval card to click:   make lab
With a real model: set OPENAI_API_KEY (and OPENAI_BASE_URL for a server other than OpenAI's) before `make lab`,
and write %agent model NAME in the notebook in place of %agent model demo."""


if __name__ == "__main__":
    sys.exit(main())
