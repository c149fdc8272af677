"""Identifiers and times as they stand in events and logs."""

from __future__ import annotations

import datetime
import uuid


def new_id() -> str:
    """A short unique identifier."""
    return uuid.uuid4().hex[:16]


def timestamp() -> str:
    """Now, ISO 8601 in UTC with milliseconds."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
