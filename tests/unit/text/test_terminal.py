"""Printed text in bounded memory."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq_notebook.text.terminal import BoundedText, plain


def _collected(*pieces: str, head: int = 100, tail: int = 100) -> BoundedText:
    text = BoundedText(head, tail)
    for piece in pieces:
        text.write(piece)
    return text


@pytest.mark.parametrize(
    ("pieces", "left"),
    [
        (["a", "b\n", "c"], "ab\nc"),
        (["one\rtwo"], "two"),
        (["one\r", "two"], "two"),
        (["one\r", "\ntwo"], "one\ntwo"),
        (["a\r\nb\r\n"], "a\nb\n"),
        (["\r 10%", "\r 20%", "\r100%", "\n", "done\n"], "100%\ndone\n"),
        (["kept\n", "x\ry\rz\n"], "kept\nz\n"),
        (["bar\r"], "bar"),
        (["\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07\x1b[K"], "red link"),
        (["bell\x07 null\x00"], "bell null"),
        (["\ud800"], "\ufffd"),
    ],
)
def test_what_is_left_on_the_screen(pieces: list[str], left: str) -> None:
    assert _collected(*pieces).value() == left


@given(st.lists(st.text(alphabet="ab\n", max_size=30), max_size=60))
def test_short_text_without_carriage_returns_stays_as_it_is(pieces: list[str]) -> None:
    text = _collected(*pieces, head=10_000)
    assert text.value() == "".join(pieces)
    assert text.dropped == 0


@given(st.lists(st.text(alphabet="ab\n", max_size=400), max_size=40))
def test_long_text_keeps_both_ends_and_counts_the_rest(pieces: list[str]) -> None:
    whole = "".join(pieces)
    text = _collected(*pieces, head=50, tail=50)
    value = text.value()
    assert value.startswith(whole[:50])
    if text.dropped:
        head, _, tail = value.partition("\n… ")
        assert head == whole[:50]
        assert whole.endswith(tail.partition("left out …\n")[2])
        assert len(head) + len(tail.partition("left out …\n")[2]) + text.dropped == len(whole)


def test_one_endless_line_is_bounded() -> None:
    text = BoundedText(1_000, 1_000)
    for _ in range(10_000):
        text.write("x" * 1_000)
    assert len(text.value()) < 12_000
    assert text.dropped > 9_900_000


def test_many_threads_may_write() -> None:
    text = BoundedText(10**6, 10**6)
    threads = [threading.Thread(target=lambda: [text.write("line\n") for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert text.value() == "line\n" * 2_000


def test_cleared_text_is_gone() -> None:
    text = _collected("old\n")
    text.clear()
    text.write("new")
    assert text.value() == "new"


def test_plain_keeps_ordinary_text() -> None:
    assert plain("tab\tüñí 漢字 🎈\n") == "tab\tüñí 漢字 🎈\n"
