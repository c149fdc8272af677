"""What a search found, and how it is shown to the model."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from zq_notebook.text.unicode import well_formed

MAX_LINE_CHARS = 500


class Line(msgspec.Struct, frozen=True):
    """One line of a file; ``hit`` says whether it matches or is context, ``at`` where in it the match begins."""

    number: int
    text: str
    hit: bool = True
    at: int = 0


class FileMatches(msgspec.Struct):
    """The matches in one file. ``path`` is as it is shown, ``count`` how many lines match."""

    path: str
    count: int
    lines: list[Line]


def _shortened(line: Line) -> str:
    """The line, or the part of it around the match."""
    text = line.text.rstrip("\r\n")
    if len(text) <= MAX_LINE_CHARS:
        return text
    start = max(0, min(line.at - 100, len(text) - MAX_LINE_CHARS))
    return ("…" if start else "") + text[start : start + MAX_LINE_CHARS] + "…"


def _blocks(found: FileMatches) -> list[str]:
    out: list[str] = []
    previous: int | None = None
    for line in found.lines:
        if previous is not None and line.number > previous + 1 and not all(item.hit for item in found.lines):
            out.append("--")
        mark = ":" if line.hit else "-"
        out.append(f"{found.path}{mark}{line.number}{mark}{_shortened(line)}")
        previous = line.number
    return out


def _first_lines(found: FileMatches, hits: int) -> FileMatches:
    """The file's lines up to and including its ``hits``-th match."""
    kept: list[Line] = []
    for line in found.lines:
        if line.hit:
            if not hits:
                break
            hits -= 1
        kept.append(line)
    return FileMatches(found.path, found.count, kept)


def render(found: Sequence[FileMatches], mode: str, limit: int, *, room: int) -> tuple[str, str]:
    """The result for the model within ``limit`` matches (or files) and ``room`` characters, and its summary."""
    ordered = sorted(found, key=lambda item: item.path)
    total = sum(item.count for item in ordered)
    summary = f"{total:,} match{'' if total == 1 else 'es'} in {len(ordered):,} file{'' if len(ordered) == 1 else 's'}"
    out: list[str] = []
    shown, full = 0, False
    for item in ordered:
        if mode == "content":
            part = _blocks(_first_lines(item, limit - shown))
        else:
            part = [item.path if mode == "files" else f"{item.path}:{item.count}"]
        for text in part:
            room -= len(text) + 1
            if room < 0:
                full = True
                break
            out.append(text)
        shown += min(item.count, limit - shown) if mode == "content" else 1
        if full or shown >= limit:
            full = full or shown < (total if mode == "content" else len(ordered))
            break
    if full:
        out.append(f"[there are more: {summary} in all; narrow the pattern, path or glob, or raise the limit]")
    elif mode == "content":
        out.append(f"[{summary}]")
    return well_formed("\n".join(out)), summary
