"""What is searched for, and where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from zq_notebook.cancel import CancelToken

MAX_MATCHES = 20_000  # after so many the search stops
Mode = Literal["content", "files", "count"]


class InvalidPattern(ValueError):
    """A regular expression that cannot be used; the message says why."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One search. ``place`` is a directory or file (resolved); ``context`` is lines before and after a match."""

    pattern: str
    place: Path
    workspace: Path
    cancel: CancelToken
    globs: tuple[str, ...] = ()
    context: int = 0
    mode: Mode = "content"
    ignore_case: bool = False
    literal: bool = False
    ignored: bool = False
    limit: int = 200

    def show(self, path: str) -> str:
        """``path`` as it is shown: relative to the workspace when it is inside."""
        base = str(self.workspace).rstrip(os.sep) + os.sep
        return (path[len(base) :] if path.startswith(base) else path).replace(os.sep, "/")
