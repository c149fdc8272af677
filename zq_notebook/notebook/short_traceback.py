"""Errors for a model: what was raised and where in the user's own code, in a few lines without colour."""

from __future__ import annotations

import contextvars
import linecache
import os
import re
import sysconfig
import traceback
from types import TracebackType
from typing import Any

import msgspec

from zq_notebook.text.terminal import plain
from zq_notebook.text.truncate import clip_middle

_MAX_MESSAGE = 2_000
_MAX_FRAMES = 12
_MAX_LINE = 200
_LIBRARY_DIRS = tuple({os.path.realpath(path) + os.sep for key, path in sysconfig.get_paths().items() if "lib" in key})

# As warnings print it: <temporary directory>/ipykernel_<process>/<hash>.py
_CELL_FILE = re.compile(r"[^\s\"'<>]*\bipykernel_\d+[/\\]\d+\.py\b")

_PACKAGE_DIR = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

#: The file name under which the code that runs now was compiled.
running: contextvars.ContextVar[str] = contextvars.ContextVar("zq_running_code", default="")


class CodeError(msgspec.Struct, frozen=True):
    """An exception: its type's name, its message, and the frames of the user's code that led to it."""

    ename: str
    evalue: str
    traceback: str = ""

    def as_text(self) -> str:
        """The whole as it is shown to the model."""
        head = f"{self.ename}: {self.evalue}" if self.evalue else self.ename
        return f"{self.traceback}\n{head}" if self.traceback else head


def describe(error: BaseException, shell: Any) -> CodeError:
    """``error`` with the frames that ran cells or files of the user; library frames are counted, not shown."""
    name = type.__dict__["__name__"].__get__(type(error))
    if isinstance(error, SyntaxError):
        return CodeError(name, _message(error), _syntax_place(error, shell))
    if name == "UsageError":
        return CodeError(name, _message(error))
    lines = _frames(error.__traceback__, shell)
    lines += _notes(error) + _members(error, shell) + _cause(error)
    return CodeError(name, _message(error), plain("\n".join(lines)))


def _message(error: BaseException) -> str:
    try:
        text = error.msg if isinstance(error, SyntaxError) and error.msg else str(error)
    except Exception as second:
        text = f"<its message could not be made: {type(second).__name__}>"
    return plain(clip_middle(text, _MAX_MESSAGE))


def _syntax_place(error: SyntaxError, shell: Any) -> str:
    place = place_of(error.filename or "", shell)
    lines = [f"  {place}, line {error.lineno}" if error.lineno else f"  {place}"]
    if error.text:
        source = error.text.rstrip("\n")[:_MAX_LINE]
        lines.append(f"    {source.lstrip()}")
        if error.offset:
            column = max(0, error.offset - 1 - (len(source) - len(source.lstrip())))
            lines.append("    " + " " * min(column, _MAX_LINE) + "^")
    return plain("\n".join(lines))


def _frames(start: TracebackType | None, shell: Any) -> list[str]:
    shown: list[str] = []
    hidden = 0
    last_hidden = ""
    for frame, number in traceback.walk_tb(start):
        code = frame.f_code
        if _is_users(code.co_filename, shell):
            text = linecache.getline(code.co_filename, number).strip()[:_MAX_LINE]
            shown.append(f"  {place_of(code.co_filename, shell)}, line {number}, in {code.co_name}: {text}")
            last_hidden = ""
        elif shown and not _is_ours(
            code.co_filename
        ):  # what comes before the first frame of the user's is IPython and this package
            hidden += 1
            last_hidden = f"  raised in {_library_place(code.co_filename)} line {number}, in {code.co_name}"
    lines = _folded(shown)
    if last_hidden:
        lines.append(last_hidden + (f" ({hidden} library frames not shown)" if hidden > 1 else ""))
    return lines


def _folded(lines: list[str]) -> list[str]:
    """Recursion makes a thousand lines that say the same."""
    if len(lines) <= _MAX_FRAMES:
        return lines
    kept = _MAX_FRAMES // 2
    return [*lines[:kept], f"  … {len(lines) - 2 * kept} more frames …", *lines[-kept:]]


def _is_users(filename: str, shell: Any) -> bool:
    if _cell_number(filename, shell) is not None:
        return True
    if filename.startswith("<"):
        return False
    path = os.path.realpath(filename)
    return not path.startswith(_LIBRARY_DIRS) and not _is_ours(path)


def _is_ours(filename: str) -> bool:
    return filename.startswith(_PACKAGE_DIR)


def _cell_number(filename: str, shell: Any) -> object | None:
    names = getattr(getattr(shell, "compile", None), "_filename_map", None)
    return names.get(filename) if isinstance(names, dict) else None


def place_of(filename: str, shell: Any, own: str | None = None) -> str:
    """A file in a few words, the same in every kernel: cells by their number, other files by their name.

    ``own`` is the name of the code that is being reported on; by default the one that runs.
    """
    if not filename or filename == (running.get() if own is None else own):
        return "this code"
    number = _cell_number(filename, shell)
    if number is not None:
        # Code of the agent is compiled under the number that the user's next cell will have.
        mine = number == getattr(shell, "execution_count", None)
        return "earlier code of the agent" if mine else f"cell In[{number}]"
    return os.path.basename(filename)


def with_places(text: str, shell: Any, own: str) -> str:
    """``text`` with the temporary names that the kernel gives to cells replaced by :func:`place_of`."""
    if "ipykernel_" not in text:
        return text
    return _CELL_FILE.sub(lambda match: place_of(match[0], shell, own), text)


def _library_place(filename: str) -> str:
    parts = filename.replace("\\", "/").split("/")
    return "/".join(parts[-3:]) if not filename.startswith("<") else filename


def _notes(error: BaseException) -> list[str]:
    notes = getattr(error, "__notes__", None)
    if not isinstance(notes, list):
        return []
    return [f"  note: {note[:_MAX_LINE]}" for note in notes[:5] if isinstance(note, str)]


def _members(error: BaseException, shell: Any) -> list[str]:
    if not isinstance(error, BaseExceptionGroup):
        return []
    lines = []
    for number, member in enumerate(error.exceptions[:5], 1):
        lines.append(f"  {number}. {type(member).__name__}: {_message(member)}")
        lines += [f"  {line}" for line in _frames(member.__traceback__, shell)[-2:]]
    return lines


def _cause(error: BaseException) -> list[str]:
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is None or cause is error:
        return []
    word = "caused by" if error.__cause__ is not None else "while handling"
    return [f"  {word} {type(cause).__name__}: {_message(cause)[:_MAX_LINE]}"]
