"""What a call would do to a file, as a diff against the file as it is now."""

from __future__ import annotations

import difflib
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from zq_notebook.notebook.arguments import Part, argument_parts, language_of, pretty_json, quoted
from zq_notebook.text.truncate import bytes_words

# Comparing larger files would hold up the kernel.
MAX_COMPARED = 400_000


class FileChange(msgspec.Struct, frozen=True):
    """``verb`` and ``path`` for the card's title, ``why`` for its second line, ``parts`` for its body."""

    verb: str
    path: str
    why: str
    parts: list[Part]


class _Current(msgspec.Struct, frozen=True):
    """The file now: ``text`` is ``None`` when there is none, or ``problem`` says why it cannot be compared."""

    text: str | None = None
    problem: str = ""


def file_change(tool_name: str, arguments: Mapping[str, Any], workspace: Path) -> FileChange:
    """The change that ``write_file`` or ``replace_in_file`` would make. Reads the file, changes nothing."""
    path = str(arguments["path"])
    target = workspace / path
    current = _read(target)
    if tool_name == "write_file" and isinstance(arguments.get("content"), str):
        change = _whole_file(path, arguments["content"], current)
    elif isinstance(arguments.get("old"), str) and isinstance(arguments.get("new"), str):
        change = _replacement(path, arguments, current)
    else:
        why = "Changes a file. It cannot be undone automatically."
        return FileChange("change", path, _elsewhere(target) + why, argument_parts(arguments))
    shown = {"path", "content"} if tool_name == "write_file" else {"path", "old", "new"}
    rest = {key: value for key, value in arguments.items() if key not in shown}
    parts = [*change.parts, Part("code", pretty_json(rest), language="json")] if rest else change.parts
    return FileChange(change.verb, path, _elsewhere(target) + change.why, parts)


def _whole_file(path: str, content: str, current: _Current) -> FileChange:
    size = bytes_words(len(content.encode("utf-8", "replace")))
    if current.text is not None:
        why = "Replaces a file. The old text is in the diff below; it cannot be undone automatically."
        if current.text == content:
            return FileChange("rewrite", path, "The file already has exactly this text.", [_new_text(path, content)])
        return FileChange("replace", path, why, [Part("diff", _diff(current.text, content, path))])
    if current.problem:
        why = (
            f"Replaces what is there now, which cannot be shown: {current.problem}. It cannot be undone automatically."
        )
        return FileChange("replace", path, why, [_new_text(path, content)])
    why = f"Creates a file of {size}. To take it back, delete the file."
    return FileChange("create", path, why, [_new_text(path, content)])


def _replacement(path: str, arguments: Mapping[str, Any], current: _Current) -> FileChange:
    old, new = str(arguments["old"]), str(arguments["new"])
    every = any(arguments.get(key) is True for key in ("all", "replace_all"))
    found = current.text.count(old) if current.text is not None and old else 0
    if current.text is None:
        problem = current.problem or "it does not exist"
        why = f"The file cannot be compared: {problem}. The text to replace and its replacement are below."
        return FileChange("change", path, why, _old_and_new(path, old, new))
    if found == 0:
        why = "The text to replace is not in the file as it is now, so this is likely to fail."
        return FileChange("change", path, why, _old_and_new(path, old, new))
    if found > 1 and not every:
        why = f"The text to replace is in the file {found} times, so this may fail. The first is shown."
    else:
        places = "1 place" if found == 1 else f"{found} places"
        why = f"Changes a file in {places}. The old text is in the diff below; it cannot be undone automatically."
    changed = current.text.replace(old, new) if every else current.text.replace(old, new, 1)
    return FileChange("change", path, why, [Part("diff", _diff(current.text, changed, path))])


def _old_and_new(path: str, old: str, new: str) -> list[Part]:
    language = language_of(path)
    return [Part("code", old, "old text", language), Part("code", new, "new text", language)]


def _new_text(path: str, content: str) -> Part:
    return Part("code", content, language=language_of(path))


def _diff(old: str, new: str, path: str) -> str:
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    lines = []
    for line in list(difflib.unified_diff(before, after))[2:]:
        lines.append(line if line.endswith("\n") else f"{line}\n\\ no newline at the end of the file\n")
    return "".join(lines)


def _read(target: Path) -> _Current:
    try:
        status = target.stat()
    except FileNotFoundError:
        return _Current()
    except (OSError, ValueError) as error:
        return _Current(problem=_problem(error))
    if not stat.S_ISREG(status.st_mode):
        return _Current(problem="it is not a regular file")
    if status.st_size > MAX_COMPARED:
        return _Current(problem=f"it has {bytes_words(status.st_size)}")
    try:
        # newline="" keeps the file's own line ends, so that a change of those shows too
        with target.open(encoding="utf-8", newline="") as file:
            return _Current(text=file.read())
    except UnicodeDecodeError:
        return _Current(problem=f"it is not text ({bytes_words(status.st_size)})")
    except OSError as error:
        return _Current(problem=_problem(error))


def _problem(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "its name cannot be used"


def _elsewhere(target: Path) -> str:
    """A sentence about links, when the path leads somewhere else than it says."""
    try:
        parent, real = target.parent.resolve(), target.resolve()
    except (OSError, RuntimeError, ValueError):
        return ""
    return (
        f"The path is a link to {quoted(str(real))}. " if real != parent / target.name and target.is_symlink() else ""
    )
