"""Searching in files: ripgrep where it is installed, else the same from Python (Manual §7.1)."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from zq_notebook.cancel import CancelToken
from zq_notebook.errors import ToolError
from zq_notebook.toolio import ToolContext, ToolOutput
from zq_notebook.tools import budget, python_search, ripgrep
from zq_notebook.tools.matches import FileMatches, render
from zq_notebook.tools.place import Workspace, explain
from zq_notebook.tools.query import InvalidPattern, Query
from zq_notebook.tools.registry import ToolMetadata, ToolRegistry
from zq_notebook.tools.schema import function_schema

DEFAULT_LIMIT = 200
MAX_SECONDS = 60.0
_METADATA = ToolMetadata(category="search", risk_level="low", capabilities=("read",), requires_approval=False)
_SCHEMA = function_schema(
    "grep",
    "Search in files with a regular expression, line by line. Leaves out binary files and what .gitignore names.",
    {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1, "description": "Regular expression"},
            "path": {"type": "string", "description": "Directory or file to search (default: the workspace)"},
            "glob": {
                "type": "string",
                "description": "Only files that fit, even ignored ones: *.py, src/**/*.ts; !*.min.js leaves out",
            },
            "mode": {
                "type": "string",
                "enum": ["content", "files", "count"],
                "description": "The matching lines (default), the names of the files, or how many lines match in each",
            },
            "context": {
                "type": "integer",
                "minimum": 0,
                "maximum": 50,
                "description": "Lines to show before and after each match (default 0)",
            },
            "ignore_case": {"type": "boolean", "description": "Upper and lower case alike (default false)"},
            "literal": {"type": "boolean", "description": "The pattern is plain text (default false)"},
            "ignored": {"type": "boolean", "description": "Include what .gitignore names (default false)"},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 5000,
                "description": f"How many matches, or files, at most (default {DEFAULT_LIMIT})",
            },
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
)


def find(query: Query, program: str | None) -> list[FileMatches]:
    """Search with ``program`` (a ripgrep), or in Python without one.

    A pattern with lookaround or back references, which ripgrep does not have, is searched for in Python. Raises
    :class:`ToolError`, for an invalid pattern with what is wrong with it.
    """
    try:
        if program is not None:
            try:
                return ripgrep.search(program, query)
            except InvalidPattern:
                return python_search.search(query)
        return python_search.search(query)
    except InvalidPattern as error:
        raise ToolError(
            f"The pattern {query.pattern!r} is not a valid regular expression: {error}. Put a backslash before "
            "characters such as ( [ { * + ? that are meant as they are, or set literal=true."
        ) from None


def register_search_tool(registry: ToolRegistry, workspace: str | os.PathLike[str]) -> None:
    """Register ``grep`` (Manual §7.1)."""
    place_of = Workspace(workspace)

    def grep(args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        place = place_of.find(str(args.get("path") or "."))
        if not os.path.lexists(place):
            raise explain(FileNotFoundError(2, "No such file or directory"), place_of.show(place))
        if not place.is_dir() and not place.is_file():
            raise ToolError(f"{place_of.show(place)} is neither a file nor a directory.")
        if "\n" in args["pattern"] or "\0" in args["pattern"]:
            raise ToolError("The pattern must be one line: lines are searched one by one.")
        stop = CancelToken()
        query = Query(
            pattern=args["pattern"],
            place=place,
            workspace=place_of.root,
            cancel=stop,
            globs=(args["glob"],) if args.get("glob") else (),
            context=args.get("context") or 0,
            mode=args.get("mode") or "content",
            ignore_case=bool(args.get("ignore_case")),
            literal=bool(args.get("literal")),
            ignored=bool(args.get("ignored")),
            limit=args.get("limit") or DEFAULT_LIMIT,
        )
        # Some files never end, such as those in /sys: a search of everything must not hold up the turn.
        remove = ctx.cancel.on_cancel(stop.set)
        timer = threading.Timer(MAX_SECONDS, stop.set)
        timer.start()
        try:
            found = find(query, ripgrep.find_ripgrep(os.environ.get("PATH")))
        except ToolError as error:
            if stop.is_set() and not ctx.cancel.is_set():
                raise ToolError(
                    f"The search took more than {MAX_SECONDS:g} s and was stopped. Search in a smaller directory, or "
                    "give a glob."
                ) from error
            raise
        finally:
            timer.cancel()
            remove()
        if not found:
            return ToolOutput(text="No matches.", summary="0 matches")
        text, summary = render(found, query.mode, query.limit, room=max(budget.limit() - 300, 100))
        return ToolOutput(text=text, summary=summary)

    registry.register(grep, _METADATA, _SCHEMA)
