"""Pages of text files of any size, with lines of any length, in bounded time and memory."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from zq_notebook.tools.encoding import TextStyle

CHUNK = 256 * 1024  # bytes
MAX_LINE_CHARS = 2000
NUMBER_CHARS = 8  # a line number, a tab and the line break
_COUNT_AHEAD = 256  # chunks that are looked at, after the page, to say how many lines there are


class Page(msgspec.Struct):
    """Numbered lines, and what is known about the rest of the file.

    ``total`` is the number of lines of the file, ``None`` when it goes on for too long to be counted; ``cut`` are the
    numbers of lines that are longer than shown.
    """

    lines: list[tuple[int, str]]
    cut: list[int]
    total: int | None = None


def _texts(file: BinaryIO, style: TextStyle) -> Iterator[str]:
    """The decoded file in chunks; bytes that do not decode become U+FFFD."""
    file.seek(len(style.bom))
    decoder = codecs.getincrementaldecoder(style.encoding)("replace")
    while data := file.read(CHUNK):
        yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


class _Lines:
    """The lines of a file, one by one or many at a time."""

    def __init__(self, chunks: Iterator[str], newline: str) -> None:
        self._chunks = chunks
        self._newline = newline
        self._text = ""
        self._at = 0

    def _more(self) -> bool:
        """Fetch the next chunk that is not empty; whether there was one."""
        for text in self._chunks:
            if text:
                self._text, self._at = text, 0
                return True
        self._text, self._at = "", 0
        return False

    def skip(self, count: int) -> int:
        """Go past ``count`` lines; how many there were."""
        left = count
        started = False  # whether the line that is being skipped has any text
        while left:
            breaks = self._text.count(self._newline, self._at)
            if breaks < left:
                left -= breaks
                last = self._text.rfind(self._newline, self._at)
                started = last + 1 < len(self._text) if last >= 0 else started or self._at < len(self._text)
                if not self._more():
                    return count - left + (1 if started else 0)
            else:
                for _ in range(left):
                    self._at = self._text.index(self._newline, self._at) + 1
                left = 0
        return count

    def next(self) -> tuple[str, int] | None:
        """The beginning of the next line and its whole length, or ``None`` at the end."""
        parts: list[str] = []
        length = 0
        found = False
        while True:
            end = self._text.find(self._newline, self._at)
            stop = len(self._text) if end < 0 else end
            if length <= MAX_LINE_CHARS:
                parts.append(self._text[self._at : min(stop, self._at + MAX_LINE_CHARS + 1)])
            length += stop - self._at
            if end >= 0:
                self._at = end + 1
                found = True
                break
            if not self._more():
                break
        return ("".join(parts), length) if found or length else None

    def count_rest(self) -> int | None:
        """How many lines follow, or ``None`` when that would take too long."""
        total = 0
        ends_line = True
        for _ in range(_COUNT_AHEAD):
            total += self._text.count(self._newline, self._at)
            if self._at < len(self._text):
                ends_line = self._text.endswith(self._newline)
            if not self._more():
                return total + (0 if ends_line else 1)
        return None


def read_page(file: BinaryIO, style: TextStyle, offset: int, limit: int, max_chars: int) -> Page:
    """Lines ``offset`` (from 1) … of ``file``, at most ``limit`` of them and about ``max_chars`` characters."""
    lines = _Lines(_texts(file, style), "\r" if style.newline == "\r" else "\n")
    page = Page([], [])
    skipped = lines.skip(offset - 1)
    if skipped < offset - 1:
        page.total = skipped
        return page
    number, room, unshown = offset, max_chars, 0
    while len(page.lines) < limit:
        found = lines.next()
        if found is None:
            page.total = number - 1
            return page
        text, length = found
        text = text.removesuffix("\r")
        if length > MAX_LINE_CHARS or len(text) > max_chars:
            text = text[: min(MAX_LINE_CHARS, max_chars)]
            page.cut.append(number)
        room -= len(text) + NUMBER_CHARS
        if page.lines and room < 0:
            # It does not fit on this page any more and will be the first of the next.
            page.cut = [cut for cut in page.cut if cut != number]
            unshown = 1
            break
        page.lines.append((number, text))
        number += 1
    rest = lines.count_rest()
    page.total = None if rest is None else number - 1 + unshown + rest
    return page
