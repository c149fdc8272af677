"""The same search without ripgrep: a walk in Python."""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Iterator

from zq_notebook.errors import ToolError
from zq_notebook.tools.ignore import Glob, walk
from zq_notebook.tools.matches import FileMatches, Line
from zq_notebook.tools.query import MAX_MATCHES, InvalidPattern, Query

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
MAX_FILE_BYTES = 64 * 1024 * 1024  # larger files are passed over


def compile_pattern(query: Query) -> re.Pattern[str]:
    """The pattern for single lines. Raises :class:`InvalidPattern` with the place of the mistake."""
    text = re.escape(query.pattern) if query.literal else query.pattern
    try:
        return re.compile(text, re.MULTILINE | (re.IGNORECASE if query.ignore_case else 0))
    except re.error as error:
        where = f" at character {error.pos + 1}" if error.pos is not None else ""
        raise InvalidPattern(f"{error.msg}{where}") from None
    except (OverflowError, RecursionError) as error:
        raise InvalidPattern(str(error) or "it is nested too deeply") from None


def _bytes(path: str) -> bytes | None:
    """The content of a regular file of bearable size; ``None`` for everything else."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return None
        # Mostly one read; the loop is for files that grow, and for those that do not tell their size.
        parts = [os.read(descriptor, status.st_size + 1)]
        while parts[-1] and sum(map(len, parts)) != status.st_size:
            parts.append(os.read(descriptor, 1024 * 1024))
            if sum(map(len, parts)) > MAX_FILE_BYTES:
                return None
        return b"".join(parts)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _content(path: str) -> str | None:
    """The text of a regular file; ``None`` for one that is binary, too large or cannot be read."""
    data = _bytes(path)
    if data is None:
        return None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    if b"\0" in data:
        return None
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")


def _paths(query: Query) -> Iterator[str]:
    if query.place.is_file():
        yield str(query.place)
        return
    globs = [Glob(pattern) for pattern in query.globs]
    base = len(str(query.place).rstrip(os.sep)) + 1

    def fits(path: str) -> bool:
        return all(glob.matches(path[base:].replace(os.sep, "/")) for glob in globs)

    # A file that a glob names is searched even when it is ignored, as with ripgrep.
    wanted = fits if any(not glob.negated for glob in globs) else None
    for entry in walk(query.place, query.workspace, ignored=query.ignored, wanted=wanted):
        if query.cancel.is_set():
            raise ToolError("The search was stopped by the user.")
        if not entry.is_file(follow_symlinks=False):
            continue
        if not globs or fits(entry.path):
            yield entry.path


def _search_text(text: str, pattern: re.Pattern[str], query: Query) -> FileMatches | None:
    # Most files have no match; one look at the whole of them is much quicker than one at each line.
    if pattern.search(text) is None:
        return None
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    hits = {number: match.start() for number, line in enumerate(lines, 1) if (match := pattern.search(line))}
    if not hits:
        return None
    found = FileMatches("", len(hits), [])
    if query.mode == "content":
        shown = sorted(
            {
                number
                for hit in list(hits)[: query.limit + 1]
                for number in range(max(1, hit - query.context), min(len(lines), hit + query.context) + 1)
            }
        )
        found.lines = [Line(number, lines[number - 1], number in hits, hits.get(number, 0)) for number in shown]
    return found


def search(query: Query) -> list[FileMatches]:
    """Search in Python. Raises :class:`InvalidPattern` and :class:`ToolError`."""
    pattern = compile_pattern(query)
    found: list[FileMatches] = []
    total = 0
    for path in _paths(query):
        text = _content(path)
        if text is None or (result := _search_text(text, pattern, query)) is None:
            continue
        result.path = query.show(path)
        found.append(result)
        total += result.count
        if total >= MAX_MATCHES:
            break
    return found
