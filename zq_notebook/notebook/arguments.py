"""The arguments of a tool call as people want to see them: one that matters, and all of them in full."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import msgspec

from zq_notebook.text.truncate import shorten
from zq_notebook.text.visible import make_visible

# In this order; the first that a call has is the one shown on its line.
_THAT_MATTER = (
    "path",
    "command",
    "code",
    "pattern",
    "query",
    "url",
    "name",
    "task_id",
    "cell_id",
    "question",
    "source",
)

_CODE_ARGUMENTS = {"code": "ipython3", "command": "bash", "patch": "diff"}

_LANGUAGES = {
    ".py": "python", ".pyi": "python", ".js": "javascript", ".mjs": "javascript", ".ts": "typescript", ".json": "json",
    ".md": "markdown", ".sh": "bash", ".sql": "sql", ".html": "html", ".css": "css", ".yml": "yaml", ".yaml": "yaml",
    ".toml": "toml", ".r": "r", ".c": "c", ".h": "c", ".cpp": "cpp", ".java": "java", ".go": "go", ".rs": "rust",
    ".ini": "ini", ".cfg": "ini", ".xml": "xml", ".tex": "latex", ".jl": "julia",
}  # fmt: skip


class Part(msgspec.Struct, frozen=True):
    """A titled piece of text: ``kind`` is ``code``, ``diff`` or ``text``; the title may be empty."""

    kind: str
    text: str
    title: str = ""
    language: str = ""


def language_of(path: str) -> str:
    """The name of the language of a file, by its ending; ``""`` when unknown."""
    return _LANGUAGES.get(PurePosixPath(path.replace("\\", "/")).suffix.lower(), "")


def main_argument(arguments: Mapping[str, Any], limit: int = 80) -> str:
    """The argument that tells this call from others of the same tool, on one line of at most ``limit`` characters."""
    for key in _THAT_MATTER:
        value = arguments.get(key)
        if isinstance(value, str) and value.strip():
            return shorten(make_visible(value), limit)
    for value in arguments.values():
        if isinstance(value, str) and value.strip():
            return shorten(make_visible(value), limit)
    return ""


def argument_parts(arguments: Mapping[str, Any]) -> list[Part]:
    """All arguments: code, command and file content as they are, whatever is left as JSON."""
    parts, rest = [], dict(arguments)
    for key, language in _CODE_ARGUMENTS.items():
        if isinstance(rest.get(key), str):
            parts.append(Part("diff" if key == "patch" else "code", rest.pop(key), language=language))
    path = rest.get("path")
    for key in ("content", "old", "new", "source"):
        value = rest.get(key)
        if isinstance(value, str) and ("\n" in value or len(value) > 60):
            language = language_of(path) if isinstance(path, str) else ""
            parts.append(Part("code", rest.pop(key), title=key, language=language))
    if rest:
        parts.append(Part("code", pretty_json(rest), language="json"))
    return parts


def pretty_json(value: Any) -> str:
    """``value`` as indented JSON; what JSON does not know is written as its ``repr``."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=repr)


def quoted(text: str) -> str:
    """``text`` in backticks; one inside it is written by its number, so that it cannot end the quotation."""
    return f"`{make_visible(text).replace('`', '⟨U+0060⟩')}`"
