"""A model's markdown made harmless for the many programs that render markdown with raw HTML on.

What is not certainly code is written so that no reader, however it parses, finds a tag, a picture from elsewhere or a
``javascript:`` address in it.
"""

from __future__ import annotations

import itertools
import re

from zq_notebook.text.markdown import block_tokens, fence_is_closed
from zq_notebook.text.unicode import well_formed

_TAG_START = re.compile(r"<(?=[A-Za-z/!?])")
_RISKY = re.compile(r"<(?=[A-Za-z/!?])|!\[")
_BAD_TARGET = re.compile(
    r"(\]\(\s*<?\s*|^[\s>*+-]*\[[^\]]+\]:\s*<?)(?!https?:|mailto:|#)(?=[a-z][a-z0-9+.-]*:)",
    re.IGNORECASE | re.MULTILINE,
)
_PUNCTUATION = re.compile(r"[^\w\s]")


def safe_markdown(text: str) -> str:
    """``text`` as markdown whose raw HTML shows as text and whose pictures are links; code fences stay as they are.

    A fence that was never closed is closed, so that what is appended does not become part of it.
    """
    text = well_formed(text).replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    fenced = set[int]()
    closing = ""
    for token in block_tokens(text):
        if token.type == "fence" and token.map:
            first, after = token.map
            fenced.update(range(first, after))
            closed = fence_is_closed(token.markup, "\n".join(lines[first + 1 : after]))
            closing = "" if closed else token.markup
        elif token.level == 0:
            closing = ""
    pieces = list[str]()
    for is_fence, group in itertools.groupby(enumerate(lines), lambda numbered: numbered[0] in fenced):
        piece = "\n".join(line if is_fence else _safe_line(line) for _, line in group)
        pieces.append(piece if is_fence else _BAD_TARGET.sub(r"\1#", piece))
    return "\n".join([*pieces, closing] if closing else pieces)


def _safe_line(line: str) -> str:
    pieces, plain_from, at = list[str](), 0, 0
    while at < len(line):
        if line[at] == "\\":
            at += 2
        elif line[at] == "`":
            run = len(line) - at - len(line[at:].lstrip("`"))
            end = _closing(line, at + run, run)
            if end is None:
                at += run
                continue
            pieces += [_safe_prose(line[plain_from:at]), _safe_code(line[at : end + run], run)]
            plain_from = at = end + run
        else:
            at += 1
    pieces.append(_safe_prose(line[plain_from:]))
    return "".join(pieces)


def _closing(line: str, start: int, run: int) -> int | None:
    for match in re.finditer(r"`+", line[start:]):
        if len(match[0]) == run:
            return start + match.start()
    return None


def _safe_code(code: str, run: int) -> str:
    """Readers disagree about where inline code ends; code that would be a tag elsewhere is written as an element."""
    if not _RISKY.search(code):
        return code
    inside = _PUNCTUATION.sub(lambda match: f"&#{ord(match[0])};", code[run:-run].strip())
    return f"<code>{inside}</code>"


def _safe_prose(text: str) -> str:
    return _TAG_START.sub("&lt;", text).replace("![", "[")
