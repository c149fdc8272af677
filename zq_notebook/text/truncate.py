"""Shortening text so that the reader knows that it was shortened."""

from __future__ import annotations

_SPACE = " "


def shorten(text: str, limit: int) -> str:
    """The first line of ``text`` in at most ``limit`` characters; an ellipsis stands for anything left out."""
    stripped = text.strip()
    first, newline, _ = stripped.partition("\n")
    line = _SPACE.join(first.split())
    if len(line) > limit:
        return line[: max(limit - 1, 0)].rstrip() + "…"
    if newline:
        return line[: max(limit - 1, 0)].rstrip() + "…"
    return line


def clip_middle(text: str, limit: int) -> str:
    """``text`` in about ``limit`` characters: both ends, and between them a line that says how much is missing."""
    if len(text) <= limit:
        return text
    head = text[: limit * 2 // 3]
    tail = text[len(text) - limit // 3 :]
    cut = head.rfind("\n")
    if cut > len(head) // 2:
        head = head[:cut]
    cut = tail.find("\n")
    if 0 <= cut < len(tail) // 2:
        tail = tail[cut + 1 :]
    missing = len(text) - len(head) - len(tail)
    return f"{head}\n… {group(missing)} characters left out …\n{tail}"


def group(number: int) -> str:
    """``48210`` as ``48 210``: digits in groups of three with a narrow no-break space."""
    return f"{number:,}".replace(",", "\u202f")


def bytes_words(size: int) -> str:
    """A size in bytes as people say it: ``812 bytes``, ``48 kB``, ``3.1 MB``."""
    if size < 1000:
        return f"{size} bytes"
    if size < 1_000_000:
        return f"{size / 1000:.0f} kB"
    return f"{size / 1_000_000:.1f} MB"
