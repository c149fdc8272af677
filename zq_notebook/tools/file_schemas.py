"""What the model is told about the file tools."""

from __future__ import annotations

from typing import Any

from zq_notebook.tools.schema import function_schema


def _object(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _number(description: str, minimum: int = 1) -> dict[str, Any]:
    return {"type": "integer", "minimum": minimum, "description": description}


def _flag(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description}


_PATH = _text("Path, relative to the workspace")

READ_FILE = function_schema(
    "read_file",
    "Read a text file. Each line comes with its number and a tab in front, which are not part of the file. Pictures "
    "are shown; other binary files are described. Long files come in pages.",
    _object(
        ["path"],
        path=_PATH,
        offset=_number("Number of the first line (default 1)"),
        limit=_number("How many lines at most (default 2000)"),
        byte_offset=_number("Read from this byte on instead, without line numbers: for very long lines", 0),
    ),
)
LIST_FILES = function_schema(
    "list_files",
    "List files and directories by name, leaving out what .gitignore names. Directories end with a slash.",
    _object(
        [],
        path=_text("Directory, relative to the workspace (default: the workspace)"),
        pattern=_text("Only files that fit, at any depth: *.py, src/**/*.ts"),
        depth=_number("Levels of directories (default 3; with a pattern all)"),
        ignored=_flag("Include what .gitignore names (default false)"),
        limit=_number("How many entries at most (default 500)"),
    ),
)
WRITE_FILE = function_schema(
    "write_file",
    "Create a file, or replace the whole content of one. Missing directories are made. Encoding and line endings of an "
    "existing file are kept. For a small change use replace_in_file.",
    _object(["path", "content"], path=_PATH, content=_text("The whole new content")),
)
REPLACE_IN_FILE = function_schema(
    "replace_in_file",
    "Replace a piece of text in a file, literally. It must occur exactly once, unless count or replace_all is given: "
    "include enough of the lines around it. The result is the diff.",
    _object(
        ["path", "old", "new"],
        path=_PATH,
        old=_text("The text as it is in the file, white space included, without line numbers"),
        new=_text("The text to put in its place; empty to remove it"),
        count=_number("Replace all occurrences, of which there must be exactly this many"),
        replace_all=_flag("Replace all occurrences, however many (default false)"),
    ),
)
