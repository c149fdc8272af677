"""What looking at a value gives: text for the model, a few words and a small table for the card."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

MAX_CHARS = 8_000


class Inspection(msgspec.Struct, frozen=True):
    """``text`` is bounded to about 8,000 characters; ``html`` is escaped."""

    text: str
    summary: str
    html: str = ""


def bounded(lines: Sequence[str]) -> str:
    """The lines as one text, ended with a note when not all of them fit."""
    kept: list[str] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > MAX_CHARS:
            kept.append(f"… {len(lines) - len(kept):,} more lines left out")
            break
        kept.append(line)
    return "\n".join(kept)
