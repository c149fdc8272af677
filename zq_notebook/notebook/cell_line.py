"""The line behind ``%%agent``: flags, their help and their complaints."""

from __future__ import annotations

import builtins
import difflib
import keyword
import re
import shlex
import unicodedata
from collections.abc import Sequence

import msgspec

from zq_notebook.errors import UsageError

MODES = ("discuss", "plan", "interactive", "auto")

# What IPython binds by itself: its history, and the names without which no magic works.
_IPYTHONS_NAME = re.compile(r"In|Out|exit|quit|get_ipython|_{1,3}|_\d+|_i+|_i\d+|_[ido]h|__\w*__")


class CellArguments(msgspec.Struct, kw_only=True):
    """What was asked for on the ``%%agent`` line; ``None`` means: as the session has it."""

    model: str | None = None
    role: str | None = None
    mode: str | None = None
    session: str | None = None
    new: bool = False
    attach: list[str] = msgspec.field(default_factory=list)
    output: str | None = None
    max_iterations: int | None = None


class Flag(msgspec.Struct, frozen=True):
    """One flag: its spellings, the field it sets, what its value is called, and one line of help."""

    names: tuple[str, ...]
    field: str
    value: str | None
    help: str


FLAGS = (
    Flag(("-m", "--model"), "model", "MODEL", "model for this turn; 'demo' needs no key"),
    Flag(("-r", "--role"), "role", "ROLE", "role for this turn: code, cowork or analyst"),
    Flag(("--mode",), "mode", "MODE", "for this turn: discuss or plan (reads only), interactive (asks), auto"),
    Flag(("-s", "--session"), "session", "SESSION", "go on in the conversation of this name; so do the next cells"),
    Flag(("--new",), "new", None, "forget the conversation so far and start a new one"),
    Flag(("-a", "--attach"), "attach", "FILE", "attach a picture or a text file; may be repeated"),
    Flag(("-o", "--output"), "output", "NAME", "bind the TurnResult to this variable"),
    Flag(("--max-iterations",), "max_iterations", "N", "model requests in this turn at most"),
)
_BY_NAME = {name: flag for flag in FLAGS for name in flag.names}


def parse_cell_line(line: str) -> CellArguments:
    """Read the line behind ``%%agent``. Raises UsageError with one sentence that says what to write instead."""
    arguments = CellArguments()
    words = split_words(line, "%%agent")
    while words:
        word = words.pop(0)
        name, joined, value = word.partition("=") if word.startswith("--") else (word, "", "")
        flag = _BY_NAME.get(name)
        if flag is None:
            raise UsageError(_unknown(name))
        if flag.value is None:
            if joined:
                raise UsageError(f"{name} takes no value. Write just {name}.")
            setattr(arguments, flag.field, True)
            continue
        if not joined and words:
            value = words.pop(0)
        if not value or value in _BY_NAME:
            raise UsageError(f"{name} needs a value: {name} {flag.value} ({flag.help}).")
        _set(arguments, flag, name, value)
    return arguments


def split_words(line: str, magic: str) -> list[str]:
    """The words of a line as a shell reads them. Raises UsageError for a quotation mark that is not closed."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"The line behind {magic} cannot be read ({error}). Close the quotation mark.") from None


def _set(arguments: CellArguments, flag: Flag, name: str, value: str) -> None:
    if flag.field == "attach":
        arguments.attach.append(value)
    elif flag.field == "max_iterations":
        if not value.isdecimal() or int(value) < 1:
            raise UsageError(f"{name} needs a whole number of at least 1, not {value!r}.")
        arguments.max_iterations = int(value)
    elif flag.field == "mode":
        arguments.mode = one_of("mode", value, MODES)
    elif flag.field == "output":
        arguments.output = _variable_name(name, value)
    else:
        setattr(arguments, flag.field, value)


def _variable_name(flag: str, value: str) -> str:
    """``value`` as Python writes it in the namespace, if a result can be bound to it."""
    name = unicodedata.normalize("NFKC", value)
    if not name.isidentifier() or keyword.iskeyword(name):
        raise UsageError(f"{flag} needs a Python variable name, and {value!r} is none.")
    if hasattr(builtins, name) or _IPYTHONS_NAME.fullmatch(name):
        raise UsageError(f"{flag} {value} would hide what Python or IPython calls {name}. Take another name.")
    return name


def one_of(kind: str, value: str, known: Sequence[str]) -> str:
    """``value`` if it is one of ``known``. Raises UsageError that lists them and suggests the nearest."""
    if value in known:
        return value
    close = difflib.get_close_matches(value, known, n=1)
    suggestion = f" Did you mean {close[0]!r}?" if close else ""
    raise UsageError(f"There is no {kind} {value!r}.{suggestion} Known: {', '.join(known)}.")


def _unknown(name: str) -> str:
    if not name.startswith("-"):
        return (
            f"{name!r} stands on the %%agent line, where only flags can stand. Write what you want from the agent on "
            "the lines below it. %%agent? lists the flags."
        )
    close = difflib.get_close_matches(name, list(_BY_NAME), n=1)
    suggestion = f" Did you mean {close[0]}?" if close else ""
    return f"%%agent has no flag {name}.{suggestion} %%agent? lists them all."


def flags_help() -> str:
    """The flags as aligned lines, for ``%%agent?`` and ``%agent help``."""
    rows = [(", ".join(f.names) + (f" {f.value}" if f.value else ""), f.help) for f in FLAGS]
    width = max(len(left) for left, _ in rows)
    return "\n".join(f"  {left:<{width}}  {right}" for left, right in rows)
