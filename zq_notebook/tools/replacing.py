"""Replacing a piece of text literally, and helping when it is not there."""

from __future__ import annotations

import difflib
import re

from zq_notebook.errors import ToolError

_MAX_DIFF_CHARS = 6000
_MAX_LINES_COMPARED = 20_000
_LINE_NUMBERS = re.compile(r"^ *\d+\t", re.MULTILINE)


def _pattern(old: str) -> re.Pattern[str]:
    """``old`` literally, except that a line break stands for either kind."""
    lines = old.replace("\r\n", "\n").split("\n")
    return re.compile("\r?\n".join(re.escape(line) for line in lines))


def replace(
    text: str, old: str, new: str, *, count: int | None, every: bool, newline: str, shown: str
) -> tuple[str, int]:
    """``text`` with ``old`` replaced, and how often. Line endings stay those of the place that is changed.

    Without ``count`` or ``every`` there must be exactly one occurrence, with ``count`` exactly so many. Raises
    :class:`ToolError` with what the model needs to get it right.
    """
    if not old:
        raise ToolError("old is empty. Give the text to replace; to write a whole file use write_file.")
    if old == new:
        raise ToolError("old and new are the same. Nothing was changed.")
    pattern = _pattern(old)
    matches = list(pattern.finditer(text))
    if not matches:
        raise ToolError(_not_found(text, old, shown))
    if not every and len(matches) != (1 if count is None else count):
        lines = ", ".join(str(text.count("\n", 0, match.start()) + 1) for match in matches[:10])
        wanted = "once" if count is None else f"{count} times"
        raise ToolError(
            f"old occurs {len(matches)} times in {shown} (lines {lines}), not {wanted}. Nothing was changed. "
            "Include more of the surrounding text to name one place, or give count or replace_all."
        )
    unified = new.replace("\r\n", "\n")

    def changed(match: re.Match[str]) -> str:
        found = match.group()
        ending = "\r\n" if "\r\n" in found else "\n" if "\n" in found else newline
        return unified if ending == "\n" else unified.replace("\n", ending)

    return pattern.sub(changed, text), len(matches)


def _numbered(lines: list[str], first: int, count: int) -> str:
    return "\n".join(
        f"{number:>6}\t{lines[number - 1][:200]}" for number in range(first, min(first + count, len(lines) + 1))
    )


def _not_found(text: str, old: str, shown: str) -> str:
    """Why ``old`` may not be there, with the lines that come closest."""
    message = f"old was not found in {shown}. Nothing was changed."
    if _LINE_NUMBERS.match(old) and _pattern(_LINE_NUMBERS.sub("", old)).search(text):
        return f"{message} It is there without the line numbers that read_file puts in front: leave them out."
    lines = text.splitlines()[:_MAX_LINES_COMPARED]
    wanted = [line for line in old.splitlines() if line.strip()]
    if not wanted:
        return f"{message} It consists of white space only."
    at = _same_but_for_space(lines, old.strip("\r\n").splitlines())
    if at:
        height = len(old.strip("\r\n").splitlines())
        return (
            f"{message} Only its white space differs from lines {at} to {at + height - 1}; copy them exactly "
            f"(tabs and spaces, without the numbers):\n{_numbered(lines, at, min(height, 20))}"
        )
    close = _closest(lines, wanted[0].strip())
    if close:
        return (
            f"{message} The closest place begins at line {close}:\n{_numbered(lines, close, min(len(wanted) + 1, 12))}"
        )
    return f"{message} No line resembles it. Read the file again."


def _same_but_for_space(lines: list[str], old: list[str]) -> int:
    """The number of the line where ``old`` stands with other white space, or 0."""
    squeezed = ["".join(line.split()) for line in lines]
    wanted = ["".join(line.split()) for line in old]
    for start in range(len(squeezed) - len(wanted) + 1):
        if squeezed[start] == wanted[0] and squeezed[start : start + len(wanted)] == wanted:
            return start + 1
    return 0


def _closest(lines: list[str], wanted: str) -> int:
    """The number of the line that is most like ``wanted``, or 0 when none is."""
    best, best_ratio = 0, 0.6
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[:300])
    for number, line in enumerate(lines[:5000], 1):
        matcher.set_seq1(line.strip()[:300])
        if matcher.real_quick_ratio() > best_ratio and matcher.quick_ratio() > best_ratio:
            ratio = matcher.ratio()
            if ratio > best_ratio:
                best, best_ratio = number, ratio
    return best


def unified_diff(before: str, after: str, shown: str) -> str:
    """The change as a unified diff with three lines of context, cut when it is long; empty for no change."""
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > _MAX_LINES_COMPARED:
        return f"(the file has {len(new):,} lines; no diff is shown)"
    text = "\n".join(difflib.unified_diff(old, new, f"a/{shown}", f"b/{shown}", lineterm=""))
    return text if len(text) <= _MAX_DIFF_CHARS else text[:_MAX_DIFF_CHARS] + "\n… (the diff goes on)"


def change_summary(diff: str) -> str:
    """Added and removed lines of a unified diff, as ``+3 −1``."""
    lines = diff.splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++ ") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("--- ") for line in lines)
    return f"+{added} −{removed}"
