"""Texts that are the same in every kernel, and on one line where they have to be."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest

from zq_notebook.notebook.short_traceback import place_of, with_places
from zq_notebook.notebook.turn_cell import one_paragraph

SHELL = SimpleNamespace(
    compile=SimpleNamespace(_filename_map={"/tmp/ipykernel_77/123.py": 4, "/tmp/ipykernel_77/9.py": 6}),
    execution_count=6,
)


@pytest.mark.parametrize("what", ["preview(value)", "inspect_container(value).text"])
def test_a_set_is_shown_in_order_whatever_the_interpreters_seed(what: str) -> None:
    program = (
        "from zq_notebook.notebook.safe_repr import preview\n"
        "from zq_notebook.notebook.inspect_objects import inspect_container\n"
        f"for value in ({{'x', 'y', 'zeta', 'alpha'}}, frozenset({{('a', 1), ('b', 2), 'c', 3, None}})): print({what})"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3", "4")
    }
    assert len(said) == 1


def test_cells_are_named_by_number_and_other_files_by_name() -> None:
    assert place_of("/tmp/ipykernel_77/123.py", SHELL) == "cell In[4]"
    assert place_of("/tmp/ipykernel_77/9.py", SHELL) == "earlier code of the agent"
    assert place_of("/tmp/ipykernel_77/9.py", SHELL, "/tmp/ipykernel_77/9.py") == "this code"
    assert place_of("/home/me/tools.py", SHELL) == "tools.py"


def test_a_warning_names_the_cell_and_not_the_kernels_temporary_file() -> None:
    text = '/tmp/ipykernel_77/123.py:3: UserWarning: w\n  File "/tmp/ipykernel_77/9.py", line 1\n/tmp/other/1.py:2'
    assert with_places(text, SHELL, "/tmp/ipykernel_77/9.py") == (
        'cell In[4]:3: UserWarning: w\n  File "this code", line 1\n/tmp/other/1.py:2'
    )


def test_an_error_is_one_paragraph_without_control_characters() -> None:
    assert one_paragraph("one\n\x1b[31mtwo\x1b[0m\r\n\tthree\u202e") == "one two three⟨U+202E⟩"
    assert len(one_paragraph("x" * 100_000)) < 2_100
