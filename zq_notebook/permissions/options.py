"""Reading a program's options against a list of those known to be harmless."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec


def words(text: str) -> frozenset[str]:
    """The words of ``text`` as a set."""
    return frozenset(text.split())


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a program that neither run anything nor write a file.

    ``flags`` are single letters without a value, ``valued`` letters with one; ``long`` and ``long_valued`` the same for
    ``--names`` (written without dashes). ``numeric`` allows ``-5``. With ``stop_at_operand`` what follows the first
    operand belongs to that operand, as with ``python script.py …``.
    """

    flags: str = ""
    valued: str = ""
    long: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    numeric: bool = False
    stop_at_operand: bool = False


class Reading(msgspec.Struct):
    """The operands of a command line, the values of its options, and the first option that is not known."""

    operands: list[str]
    values: list[tuple[str, str]]
    unknown: str | None = None


def read_options(arguments: Sequence[str], known: Options) -> Reading:
    """Go through ``arguments`` as GNU programs do: options may come after operands, ``--`` ends them."""
    reading = Reading([], [])
    pending = list(arguments)
    while pending:
        argument = pending.pop(0)
        if argument == "--":
            reading.operands.extend(pending)
            break
        if argument == "-" or not argument.startswith("-"):
            reading.operands.append(argument)
            if known.stop_at_operand:
                break
        elif known.numeric and re.fullmatch(r"-\d+", argument):
            continue
        elif not _read_option(argument, pending, known, reading):
            reading.unknown = argument
            break
    return reading


def _read_option(argument: str, pending: list[str], known: Options, reading: Reading) -> bool:
    if argument.startswith("--"):
        name, equals, value = argument[2:].partition("=")
        if name in known.long_valued:
            reading.values.append((name, value if equals else pending.pop(0) if pending else ""))
            return True
        return name in known.long
    letters = argument[1:]
    for i, letter in enumerate(letters):
        if letter in known.valued:
            rest = letters[i + 1 :]
            reading.values.append((letter, rest or (pending.pop(0) if pending else "")))
            return True
        if letter not in known.flags:
            return False
    return True
