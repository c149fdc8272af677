"""What a file will hold after a change: one answer for the tool that makes it and for the card that asks about it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from zq_notebook.errors import ToolError
from zq_notebook.text.unicode import well_formed
from zq_notebook.tools.encoding import TextStyle, sniff
from zq_notebook.tools.look import describe_binary
from zq_notebook.tools.place import open_regular
from zq_notebook.tools.replacing import replace

MAX_EDITED = 32 * 1024 * 1024  # bytes


class Edit(msgspec.Struct, frozen=True):
    """A change of one file.

    ``before`` is its text now, ``None`` when there is no file or it is not text. ``data`` is ``after`` as bytes.
    ``times`` counts the places that change; ``note`` says what becomes of the encoding, when that is worth saying.
    """

    before: str | None
    after: str
    data: bytes
    times: int = 1
    note: str = ""


def read_existing(place: Path, shown: str) -> tuple[bytes, os.stat_result] | None:
    """The content that is about to be replaced, ``None`` when there is none. Raises :class:`ToolError`."""
    if not os.path.lexists(place):
        return None
    with open(open_regular(place, shown), "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_size > MAX_EDITED:
            raise ToolError(f"{shown} has {status.st_size:,} bytes, more than {MAX_EDITED:,}. Change it with code.")
        return file.read(), status


def whole_file(existing: bytes | None, content: str) -> Edit:
    """``content`` in place of everything, written as the file was: its encoding and line endings are kept."""
    content = well_formed(content)
    if existing is None:
        return Edit(None, content, content.encode())
    style = sniff(existing, complete=True)
    before = None if style is None else _decoded(existing, style)
    style = style or TextStyle()
    after = _in_style(content, style, existing)
    if style.bom:
        after = after.removeprefix("\ufeff")
    try:
        return Edit(before, after, style.encode(after), note=f"kept {style.note}" if style.note else "")
    except UnicodeEncodeError:
        note = f"now UTF-8, since {style.encoding} lacks some of its characters"
        return Edit(before, after, after.encode(), note=note)


def replacement(existing: bytes, arguments: Mapping[str, Any], shown: str) -> Edit:
    """``old`` replaced by ``new`` in a file. Raises :class:`ToolError` with what is in the way."""
    style = sniff(existing, complete=True)
    if style is None:
        raise ToolError(describe_binary(existing[:64], len(existing), shown))
    try:
        before = style.decode(existing)
    except UnicodeDecodeError as error:
        raise ToolError(f"{shown} is not valid {style.encoding} at byte {error.start}; it was not changed.") from None
    after, times = replace(
        before,
        well_formed(str(arguments["old"])),
        well_formed(str(arguments["new"])),
        count=arguments.get("count"),
        every=bool(arguments.get("replace_all")),
        newline=style.newline,
        shown=shown,
    )
    try:
        return Edit(before, after, style.encode(after), times)
    except UnicodeEncodeError as error:
        raise ToolError(
            f"{shown} is written in {style.encoding}, which has no {error.object[error.start]!r}. Nothing was changed."
        ) from None


def _decoded(data: bytes, style: TextStyle) -> str | None:
    try:
        return style.decode(data)
    except UnicodeDecodeError:
        return None


def _in_style(content: str, style: TextStyle, existing: bytes) -> str:
    """New content with the line endings that the file had; content that brings its own kind keeps it."""
    if style.newline == "\n" or "\r" in content or not existing:
        return content
    return content.replace("\n", style.newline)
