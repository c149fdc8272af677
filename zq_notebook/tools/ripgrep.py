"""Searching with ripgrep."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from zq_notebook.errors import ToolError
from zq_notebook.permissions.paths import is_inside
from zq_notebook.tools.ignore import ALWAYS_SKIPPED, Ignore, repository_root
from zq_notebook.tools.matches import FileMatches, Line
from zq_notebook.tools.query import MAX_MATCHES, InvalidPattern, Query

_MAX_ERROR_BYTES = 64 * 1024


@lru_cache(maxsize=8)
def find_ripgrep(path: str | None = None) -> str | None:
    """The ``rg`` on ``PATH``, absolute directories only."""
    search = os.environ.get("PATH", os.defpath) if path is None else path
    return shutil.which("rg", path=os.pathsep.join(item for item in search.split(os.pathsep) if os.path.isabs(item)))


def _base(query: Query) -> Path:
    """Where ripgrep runs: globs and --ignore-file count from there."""
    place = query.place if query.place.is_dir() else query.place.parent
    return query.workspace if is_inside(place, query.workspace) else place


def _from_base(pattern: str, query: Query) -> str:
    """A glob that counts from the place of the search, as one that counts from :func:`_base`."""
    negation, pattern = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    base = _base(query)
    if "/" not in pattern.rstrip("/") or query.place == base or not query.place.is_dir():
        return negation + pattern
    prefix = re.sub(r"([\\*?\[\]{}!])", r"\\\1", query.place.relative_to(base).as_posix())
    return f"{negation}/{prefix}/{pattern.lstrip('/')}"


def _arguments(program: str, query: Query) -> Sequence[str]:
    place, workspace = query.place, query.workspace
    arguments = [program, "--no-config", "--json", "--hidden", "--no-ignore-global", "--no-ignore-dot"]
    arguments += ["--no-ignore-exclude", "--no-messages"]
    if query.ignored or Ignore(place, workspace).hides(place):
        arguments.append("--no-ignore")
    elif repository_root(place if place.is_dir() else place.parent) is None:
        arguments += ["--no-require-git", "--no-ignore-parent"]
        if place != workspace and workspace in place.parents and (workspace / ".gitignore").is_file():
            arguments.append(f"--ignore-file={workspace / '.gitignore'}")
    # The last glob that fits decides.
    arguments += [f"--glob={_from_base(pattern, query)}" for pattern in query.globs]
    arguments += [f"--glob=!{name}" for name in ALWAYS_SKIPPED]
    if query.ignore_case:
        arguments.append("--ignore-case")
    if query.literal:
        arguments.append("--fixed-strings")
    if query.context and query.mode == "content":
        arguments.append(f"--context={query.context}")
    return [*arguments, f"--regexp={query.pattern}", "--", str(place)]


def _text(value: dict[str, str]) -> str:
    if "text" in value:
        return value["text"]
    return base64.b64decode(value["bytes"]).decode("utf-8", "replace")


class _Reader:
    """Takes in ripgrep's JSON lines."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._current: FileMatches | None = None
        self._last = 0
        self._total = 0
        self.found: list[FileMatches] = []
        self._decode = msgspec.json.Decoder(dict[str, Any]).decode

    def take(self, raw: bytes) -> bool:
        """Take one message; false when there is enough."""
        message = self._decode(raw)
        kind, data = message["type"], message["data"]
        if kind == "begin":
            self._current = FileMatches(self._query.show(_text(data["path"])), 0, [])
        elif kind in ("match", "context") and self._current is not None:
            self._line(self._current, data, hit=kind == "match")
        elif kind == "end" and self._current is not None:
            # A file with a NUL in it is binary, however late that was found out.
            if data.get("binary_offset") is None and self._current.count:
                self.found.append(self._current)
                self._total += self._current.count
            self._current = None
        return self._total < MAX_MATCHES

    def _line(self, current: FileMatches, data: dict[str, Any], *, hit: bool) -> None:
        current.count += hit
        if self._query.mode != "content" or current.count > self._query.limit + 1:
            return
        text = _text(data["lines"])
        at = 0
        if hit and data["submatches"]:
            # The offset is in bytes; only long lines are cut around it, where the difference is of no matter.
            at = int(data["submatches"][0]["start"])
        current.lines.append(Line(int(data["line_number"]), text, hit, at))


def search(program: str, query: Query) -> list[FileMatches]:
    """Run ripgrep. Raises :class:`InvalidPattern` for a pattern it refuses, :class:`ToolError` when it fails."""
    process = subprocess.Popen(
        _arguments(program, query),
        cwd=_base(query),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    remove = query.cancel.on_cancel(process.kill)
    errors: list[bytes] = []
    stderr = process.stderr
    listener = threading.Thread(target=lambda: errors.append(stderr.read(_MAX_ERROR_BYTES)), daemon=True)
    listener.start()
    reader = _Reader(query)
    enough = False
    try:
        for raw in process.stdout:
            if not reader.take(raw):
                enough = True
                break
    finally:
        process.kill()
        code = process.wait()
        listener.join(1.0)
        process.stdout.close()
        stderr.close()
        remove()
    if query.cancel.is_set():
        raise ToolError("The search was stopped by the user.")
    message = b"".join(errors).decode("utf-8", "replace").strip()
    if code == 2 and not enough and not reader.found and message:
        if "regex" in message or "pattern" in message or "PCRE" in message:
            raise InvalidPattern(message)
        raise ToolError(f"The search failed: {message[:500]}")
    return reader.found
