"""The line behind ``%%agent``."""

import pytest

from zq_notebook.errors import UsageError
from zq_notebook.notebook.cell_line import CellArguments, flags_help, parse_cell_line


def test_all_flags_are_read() -> None:
    line = "-m gpt-x -r analyst --mode plan -s side --new -a 'my file.csv' -a b.png -o answer --max-iterations 7"
    assert parse_cell_line(line) == CellArguments(
        model="gpt-x",
        role="analyst",
        mode="plan",
        session="side",
        new=True,
        attach=["my file.csv", "b.png"],
        output="answer",
        max_iterations=7,
    )


def test_long_flags_take_their_value_behind_an_equals_sign() -> None:
    assert parse_cell_line("--model=a=b --max-iterations=3") == CellArguments(model="a=b", max_iterations=3)


def test_an_empty_line_asks_for_nothing() -> None:
    assert parse_cell_line("   ") == CellArguments()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--modell x", "Did you mean --model?"),
        ("-x", "%%agent? lists them all"),
        ("fix my code", "'fix' stands on the %%agent line"),
        ("--mode yolo", "There is no mode 'yolo'"),
        ("--mode atuo", "Did you mean 'auto'?"),
        ("-m", "-m needs a value: -m MODEL"),
        ("-m --new", "-m needs a value"),
        ("--model=", "--model needs a value"),
        ("--new=yes", "--new takes no value"),
        ("--max-iterations 0", "at least 1"),
        ("--max-iterations many", "whole number"),
        ("-o 3x", "'3x' is none"),
        ("-a 'open", "Close the quotation mark"),
    ],
)
def test_a_line_that_cannot_be_carried_out_is_explained_in_one_paragraph(line: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_cell_line(line)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_help_names_every_flag() -> None:
    for flag in ("-m", "--model", "-r", "--mode", "-s", "--new", "-a", "-o", "--max-iterations"):
        assert flag in flags_help()
