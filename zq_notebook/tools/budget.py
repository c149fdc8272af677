"""How much of a result the model gets, and where the rest is kept (Manual §7.2, §20.2)."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import tempfile
from functools import lru_cache
from pathlib import Path

from zq_notebook.toolio import ToolContext

DEFAULT_MAX_CHARS = 30_000
_MINIMUM = 200
_counter = itertools.count(1)


def _number(variable: str, default: int) -> int:
    """A positive number of characters from the environment; anything unreadable counts as not set."""
    try:
        value = int(os.environ.get(variable, ""))
    except ValueError:
        return default
    return value if value > 0 else default


def limit() -> int:
    """The longest result, in characters, that reaches the model uncut.

    ``TOOL_RESULT_MAX_CHARS`` is what the model gets at most, ``TOOL_RESULT_SAVE_THRESHOLD`` the size from which a
    result is saved. Whatever would be cut is saved, so the smaller of the two counts. Both are read at every call.
    """
    maximum = _number("TOOL_RESULT_MAX_CHARS", DEFAULT_MAX_CHARS)
    return max(min(maximum, _number("TOOL_RESULT_SAVE_THRESHOLD", maximum)), _MINIMUM)


@lru_cache(maxsize=1)
def _temporary_dir() -> Path:
    return Path(tempfile.mkdtemp(prefix="zq-results-"))


def result_dir(ctx: ToolContext) -> Path:
    """Where results of this call are saved: the engine's directory, ``TOOL_RESULT_DIR``, or a private temporary one."""
    if ctx.result_dir is not None:
        return Path(ctx.result_dir)
    configured = os.environ.get("TOOL_RESULT_DIR")
    return Path(configured).expanduser() if configured else _temporary_dir()


def new_result_file(ctx: ToolContext, name: str, suffix: str = ".txt") -> tuple[int, Path]:
    """A new file for a result, open for writing, with mode 0600. Raises ``OSError``."""
    directory = result_dir(ctx)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    stem = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:40]
    call = re.sub(r"[^A-Za-z0-9_-]", "_", ctx.tool_call_id)[-24:]
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    while True:
        path = directory / f"{stem}-{call or os.getpid()}-{next(_counter)}{suffix}"
        with contextlib.suppress(FileExistsError):
            return os.open(path, flags, 0o600), path


def head_and_tail(text: str, chars: int) -> tuple[str, str]:
    """The beginning and the end of ``text``, together at most ``chars`` characters, cut at line ends where near."""
    head_size = chars * 2 // 3
    head, tail = text[:head_size], text[len(text) - (chars - head_size) :]
    end = head.rfind("\n", head_size // 2)
    start = tail.find("\n", 0, len(tail) // 2)
    return (head[: end + 1] if end >= 0 else head), (tail[start + 1 :] if start >= 0 else tail)


def within_budget(text: str, ctx: ToolContext, name: str = "result") -> str:
    """``text`` itself, or its head and tail with the path of a file that holds all of it."""
    allowed = limit()
    if len(text) <= allowed:
        return text
    try:
        descriptor, path = new_result_file(ctx, name)
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        return shortened(text, allowed, f"The rest is lost: it could not be saved ({error.strerror or error})")
    return shortened(text, allowed, f"All of it is in {path}; read more with read_file(path, offset, limit) or grep")


def shortened(text: str, allowed: int, where: str) -> str:
    """Head and tail of ``text`` around a note that says what is missing and ``where`` it can be found."""
    lines = text.count("\n") + 1
    note = f"\n\n[… cut: the result has {len(text):,} characters in {lines:,} lines. {where}. …]\n\n"
    head, tail = head_and_tail(text, max(allowed - len(note), allowed // 2))
    return head.rstrip("\n") + note + tail.lstrip("\n")
