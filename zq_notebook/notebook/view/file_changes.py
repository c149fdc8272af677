"""What a call would do to a file, as a diff against the file as it is now, computed as the tool computes it."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from zq_notebook.errors import ToolError
from zq_notebook.notebook.arguments import Part, argument_parts, language_of, pretty_json, quoted
from zq_notebook.text.truncate import bytes_words
from zq_notebook.text.visible import make_visible
from zq_notebook.tools.edit import MAX_EDITED, Edit, read_existing, replacement, whole_file
from zq_notebook.tools.place import Workspace, explain

# Comparing larger files would hold up the kernel.
MAX_COMPARED = 400_000

_LAST = "The old text is in the diff below; it cannot be undone automatically."
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class FileChange(msgspec.Struct, frozen=True):
    """``verb`` and ``path`` for the card's title, ``why`` for its second line, ``parts`` for its body."""

    verb: str
    path: str
    why: str
    parts: list[Part]


def file_change(tool_name: str, arguments: Mapping[str, Any], workspace: Path) -> FileChange:
    """The change that ``write_file`` or ``replace_in_file`` would make. Reads the file, changes nothing."""
    path = str(arguments["path"])
    if tool_name == "write_file" and isinstance(arguments.get("content"), str):
        known, parts = {"path", "content"}, [_code(path, arguments["content"])]
    elif _is_replacement(arguments):
        known = {"path", "old", "new", "count", "replace_all"}
        parts = [_code(path, arguments["old"], "old text"), _code(path, arguments["new"], "new text")]
    else:
        why = "Changes a file. It cannot be undone automatically."
        return FileChange("change", path, why, argument_parts(arguments))
    try:
        change = _change(tool_name, arguments, Workspace(workspace), parts)
    except ToolError as error:
        verb = "write" if tool_name == "write_file" else "change"
        why, _, more = make_visible(str(error)).partition("\n")
        seen = [Part("text", more, "what is there now")] if more else []
        change = FileChange(verb, path, f"As things are now this will fail: {why}", [*parts, *seen])
    rest = {key: value for key, value in arguments.items() if key not in known}
    if not rest:
        return change
    return FileChange(change.verb, path, change.why, [*change.parts, Part("code", pretty_json(rest), language="json")])


def _is_replacement(arguments: Mapping[str, Any]) -> bool:
    texts = isinstance(arguments.get("old"), str) and isinstance(arguments.get("new"), str)
    return texts and isinstance(arguments.get("count"), int | None)


def _change(tool_name: str, arguments: Mapping[str, Any], workspace: Workspace, parts: list[Part]) -> FileChange:
    """The card's words for what the tool would do. Raises :class:`ToolError` where the tool would."""
    path = str(arguments["path"])
    place = workspace.find_inside(path)
    shown, leads = workspace.show(place), _leads_elsewhere(path, place, workspace)
    writes = tool_name == "write_file"
    size = _size(place, shown)
    if MAX_COMPARED < size <= MAX_EDITED:
        what = "Replaces a file" if writes else "Changes a file"
        why = f"{leads}{what} of {bytes_words(size)}, too large to be compared here. It cannot be undone automatically."
        return FileChange("replace" if writes else "change", path, why, parts)
    found = read_existing(place, shown)
    existing = None if found is None else found[0]
    if writes:
        verb, why, parts = _whole_file(path, existing, whole_file(existing, arguments["content"]))
        return FileChange(verb, path, leads + why, parts)
    if existing is None:
        raise ToolError(f"There is no {shown}.")
    edit = replacement(existing, arguments, shown)
    places = "1 place" if edit.times == 1 else f"{edit.times:,} places"
    return FileChange("change", path, f"{leads}Changes a file in {places}. {_LAST}", [_diff(edit)])


def _whole_file(path: str, existing: bytes | None, edit: Edit) -> tuple[str, str, list[Part]]:
    note = f" ({edit.note})" if edit.note else ""
    if existing is None:
        why = f"Creates a file of {bytes_words(len(edit.data))}. To take it back, delete the file."
        return "create", why, [_code(path, edit.after)]
    if edit.data == existing:
        return "rewrite", "The file already has exactly this text.", [_code(path, edit.after)]
    if edit.before is None:
        why = f"Replaces what is there now, {bytes_words(len(existing))} that are not text."
        return "replace", f"{why} It cannot be undone automatically.", [_code(path, edit.after)]
    return "replace", f"Replaces a file{note}. {_LAST}", [_diff(edit)]


def _code(path: str, text: str, title: str = "") -> Part:
    return Part("code", text, title, language_of(path))


def _diff(edit: Edit) -> Part:
    before, after = _LINE.findall(edit.before or ""), _LINE.findall(edit.after)
    lines = []
    for line in list(difflib.unified_diff(before, after))[2:]:
        lines.append(line if line.endswith("\n") else f"{line}\n")
        if not line.endswith(("\n", "\r")):
            lines.append("\\ no newline at the end of the file\n")
    return Part("diff", "".join(lines))


def _size(place: Path, shown: str) -> int:
    try:
        return place.stat().st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise explain(error, shown) from None


def _leads_elsewhere(path: str, place: Path, workspace: Workspace) -> str:
    """A sentence about where ``path`` leads, unless that is where it says."""
    if os.path.normpath(os.path.join(workspace.root, path)) == str(place):
        return ""
    return f"The path leads to {quoted(str(place))}. "
