"""An unattended notebook run twice, in different folders, by different interpreters: the same outputs to the byte."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

CELLS = (
    """\
%load_ext zq_notebook
from zq_notebook import ScriptedProvider, Step, register_model
import matplotlib.pyplot as plt, pandas as pd
table = pd.DataFrame({"a": [1, 2, 3], "b": list("xyz")})
class Thing: pass
thing, names, mixed = Thing(), {"x", "y", "zeta", "alpha"}, {("a", 1), ("b", 2), 3, None, "c"}
def double(x): return 2 * x
numbers = (i for i in range(3))""",
    """\
looks = [("inspect_variable", {"name": name}) for name in ("table", "thing", "names", "mixed", "double", "numbers")]
register_model("looks", ScriptedProvider([
    Step("Look.", reasoning="hm", tool_calls=[("list_variables", {}), *looks, ("list_files", {}),
                                              ("read_file", {"path": "none.txt"}), ("grep", {"pattern": "x"})]),
    Step("", tool_calls=[("run_code", {"code": "1"}), ("write_file", {"path": "w.txt", "content": "hi"})]),
    Step("Seen.", usage={"prompt_tokens": 5, "completion_tokens": 2})]))""",
    "%%agent -m looks\nlook around",
    """\
code = ["print(table); table", "plt.plot([1, 2])", "1 / 0", "thing", "names", "object()", "import no_such_module",
        "x = (", "import warnings; warnings.warn('w')", "print('y' * 200_000)", "made = 1; del numbers",
        "import time; time.sleep(0.05)"]
rest = [("write_file", {"path": "sub/w.txt", "content": "hi\\n"}), ("read_file", {"path": "sub/w.txt"}),
        ("replace_in_file", {"path": "sub/w.txt", "old": "hi", "new": "ho"}), ("nosuch", {}), ("read_file", {"p": 1}),
        ("run_shell", {"command": "echo out; echo err >&2; exit 3"}), ("run_shell", {"command": "seq 1 100000"}),
        ("run_shell", {"command": "echo later", "background": True}), ("list_files", {}),
        ("write_file", {"path": "/nowhere/x", "content": "1"}), ("ask_user", {"question": "Which?"})]
register_model("works", ScriptedProvider([
    Step("", tool_calls=[("run_code", {"code": piece}) for piece in code]), Step("", tool_calls=rest),
    Step("The **end**.\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |")]))""",
    "%%agent -m works --mode auto -o result\nwork",
    "result.text, result.status, result.iterations",
    "register_model('fails', ScriptedProvider([Step('half', error=RuntimeError('the model broke'))]))",
    "%%agent -m fails\nfail",
    "%agent tools",
)


def executed(folder: Path, seed: str) -> list[Any]:
    folder.mkdir(parents=True)
    notebook = new_notebook(cells=[new_code_cell(text) for text in CELLS])
    client = NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True, record_timing=False)
    client.execute(cwd=str(folder), env={**os.environ, "PYTHONHASHSEED": seed, "IPYTHONDIR": str(folder / ".ipython")})
    return [cell["outputs"] for cell in notebook.cells]


def test_every_output_is_the_same(tmp_path: Path) -> None:
    first = executed(tmp_path / "a", "1")
    second = executed(tmp_path / "another folder ü" / "deeper", "4242")
    for text, one, other in zip(CELLS, first, second, strict=True):
        assert json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True), text
    everything = json.dumps(first)
    assert str(tmp_path) not in everything
    assert "image/png" in everything
    assert "the model broke" in json.dumps(first[-2])
