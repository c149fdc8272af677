"""The reader of plain commands agrees with bash, or says no."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zq_notebook.permissions.commands import Glob, NotPlain, parse_plain

BASH = shutil.which("bash") or "bash"
PIECES = st.sampled_from(
    [
        *[
            "a",
            "b ",
            " ",
            "'",
            '"',
            "\\",
            "$",
            "`",
            "{",
            "}",
            ",",
            "..",
            "!",
            "#",
            "~",
            "=",
            "^",
            "%",
            "@",
            "-",
            "+",
            "1",
        ],
        *[
            "'a b'",
            '"a b"',
            '"$',
            "$'",
            "\\ ",
            "\\'",
            "{}",
            "@{1}",
            "[",
            "]",
            "*",
            "?",
            "(",
            ")",
            "<",
            ">",
            "|",
            "&",
            ";",
        ],
        *["é", "日", ":", "/", "x=1 ", "a~b", "''", '""', '"\\a"', '"\\\\"', '"\\$"', "'\\'"],
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=8).map("".join))
@example("a'b'\"c\"\\ d")
@example("HEAD@{1} @{u}")
@example("a#b \\# '#'")
@example("~")
def test_words_are_those_that_bash_sees(arguments: str) -> None:
    try:
        words = parse_plain(f"printf {arguments}").arguments
    except NotPlain:
        return
    if any(isinstance(word, Glob) or word.startswith("~") for word in words):
        return
    script = f"printf '%s\\0' x {arguments}"
    done = subprocess.run(
        [BASH, "--norc", "--noprofile", "-c", script], capture_output=True, check=False, env={"PATH": "/nowhere"}
    )
    assert done.stdout.decode().split("\0")[1:-1] == [str(word) for word in words]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("ls", ("ls",)),
        ("  ls   -la  ", ("ls", "-la")),
        ("git diff 'a b' \"c d\"", ("git", "diff", "a b", "c d")),
        ('grep "a\\$b" f', ("grep", "a$b", "f")),
        ("find . \\( -name x \\)", ("find", ".", "(", "-name", "x", ")")),
        ("echo ''", ("echo", "")),
        ("./run.sh x=1", ("./run.sh", "x=1")),
    ],
)
def test_plain_words(command: str, words: tuple[str, ...]) -> None:
    assert parse_plain(command).words == words


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("ls; x", "second command"),
        ("ls | x", "pipe"),
        ("ls > x", "redirection"),
        ("ls $(x)", "expansion"),
        ("ls `x`", "substitution"),
        ("ls\nx", "more than one line"),
        ("ls \u202e", "U+202E"),
        ("A=1 ls", "assignment"),
        ("ls {a,b}", "brace expansion"),
        ("ls 'a", "never closed"),
        ("x" * 2001, "2001 characters"),
        ("", "no program"),
    ],
)
def test_reason_is_in_words(command: str, says: str) -> None:
    with pytest.raises(NotPlain, match=says.replace("+", r"\+")):
        parse_plain(command)


@pytest.mark.parametrize("char", ["\t", "\u3000", "\u00a0", "\u180f", "\u200b", "\u3164", "\ufe0f", "\U000e0100"])
def test_what_a_card_writes_as_a_number_or_looks_like_a_space_is_never_plain(char: str) -> None:
    with pytest.raises(NotPlain, match=f"U.{ord(char):04X}"):
        parse_plain(f"ls a{char}b")


def test_judging_a_long_hostile_line_is_quick() -> None:
    started = time.perf_counter()
    for char in "([{$`\\'\"*":
        try:
            parse_plain("ls " + char * 1990)
        except NotPlain:
            continue
    assert time.perf_counter() - started < 1.0
