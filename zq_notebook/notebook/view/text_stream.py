"""Streamed markdown as small operations for the front end: raw text at once, rendered text block by block.

The front end keeps the raw text of what is not rendered yet (the tail) and shows it as it is. When a block of the tail
is complete, its rendered form is sent once and the tail becomes shorter by so many UTF-16 units; plain paragraphs and
code are built in the front end from the raw text it already has. So the bytes stay near twice the text.

Operations, each with the item's id in second place::

    ["+", id, text]                          append to the tail
    ["p", id, units]                         the tail's first units are one plain paragraph
    ["h", id, units, html]                   the tail's first units, rendered
    ["c", id, units, from, to, runs]         the tail's first units are a fence with this code; runs colour it
    ["f", id, from]                          the tail is an open fence, its code starts there
    ["~", id, units, html]                   the open tail, rendered up to there
    ["r", id, html]                          all of the item, anew
"""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from zq_notebook.text.highlight import tokens
from zq_notebook.text.markdown import Block, render_markdown, top_level_blocks
from zq_notebook.text.unicode import well_formed
from zq_notebook.text.visible import make_visible

Op = list[Any]

# An open block is rendered when it has this many characters, and again whenever it has grown by half.
FIRST_RENDER = 160

# Up to this many characters the tail is parsed with each new line; a longer one whenever it has grown by a tenth, so
# that a list or a paragraph of any length costs linear time.
PARSED_EACH_LINE = 3000


class TextStream:
    """One text item. ``afford(bytes)`` says whether a rendering that is only for the meantime may be sent now."""

    def __init__(self, item: int, afford: Callable[[int], bool]) -> None:
        self.item = item
        self._afford = afford
        self._tail = ""
        self._done = ""
        self._pending = list[str]()
        self._open_fence = False
        self._rendered = 0
        self._parsed = 0

    @property
    def pending(self) -> bool:
        """Whether text is waiting to be sent."""
        return bool(self._pending)

    def append(self, text: str) -> None:
        """Take a delta; nothing is sent before :meth:`drain`."""
        self._pending.append(text)

    def drain(self, *, final: bool = False) -> list[Op]:
        """The operations for what has come since the last call; ``final`` when nothing more will."""
        ops = list[Op]()
        if self._pending:
            added = well_formed("".join(self._pending))
            self._pending.clear()
            ops.append(["+", self.item, added])
            self._tail += added
            if not final and self._tail != added and not self._worth_parsing(added):
                return ops + self._meanwhile()
        return ops + self._commit(final)

    def raw(self) -> list[Op]:
        """The same for text that is never rendered."""
        added = make_visible(well_formed("".join(self._pending)), prose=True)
        self._pending.clear()
        return [["+", self.item, added]] if added else []

    def replace(self, text: str) -> list[Op]:
        """Another text in the place of all that was streamed."""
        self._pending.clear()
        self._done, self._tail, self._open_fence, self._rendered = well_formed(text), "", False, 0
        return [["r", self.item, render_markdown(text)]]

    def snapshot(self) -> list[Op]:
        """The item from nothing, for a front end that has just come."""
        ops: list[Op] = [["r", self.item, render_markdown(self._done)]] if self._done.strip() else []
        if self._tail:
            ops.append(["+", self.item, self._tail])
        if self._open_fence:
            ops.append(["f", self.item, _units(self._tail[: top_level_blocks(self._tail)[0].code_start])])
        return ops

    def _worth_parsing(self, added: str) -> bool:
        size = len(self._tail)
        if size > PARSED_EACH_LINE:
            return size >= self._parsed * 1.1
        return "\n" in self._tail[-len(added) - 1 :]  # a new line, or the first text on one

    def _commit(self, final: bool) -> list[Op]:
        ops, blocks, at = list[Op](), top_level_blocks(self._tail), 0
        self._parsed = len(self._tail)
        for number, block in enumerate(blocks):
            last = number == len(blocks) - 1
            if last and not final and not block.closed:
                break
            end = len(self._tail) if last and final else blocks[number + 1].start if not last else block.end
            ops.append(self._complete(block, at, end))
            at = end
        if at:
            self._done += self._tail[:at]
            self._tail = self._tail[at:]
            self._open_fence, self._rendered, self._parsed = False, 0, len(self._tail)
        if blocks and not final and not self._open_fence and blocks[-1].kind == "fence" and not blocks[-1].closed:
            self._open_fence = True
            ops.append(["f", self.item, _units(self._tail[: blocks[-1].code_start - at])])
        return ops if final else ops + self._meanwhile()

    def _complete(self, block: Block, at: int, end: int) -> Op:
        """The operation that turns ``tail[at:end]`` into its final form."""
        source = self._tail[at:end]
        units = _units(source)
        if block.kind == "fence" and self._tail[block.start] in "`~":
            code = self._tail[block.code_start : block.code_end].rstrip("\n")
            if "\r" not in code and make_visible(code) == code:
                start = _units(self._tail[at : block.code_start])
                return ["c", self.item, units, start, start + _units(code), _runs(code, block.language)]
        rendered = render_markdown(source)
        if rendered == f"<p>{html.escape(source.strip(), quote=False)}</p>\n":
            return ["p", self.item, units]
        return ["h", self.item, units, rendered]

    def _meanwhile(self) -> list[Op]:
        """The open tail rendered in between, when it has grown enough and looks different from its raw text."""
        size = len(self._tail)
        if self._open_fence or size < FIRST_RENDER or size < self._rendered * 1.5:
            return []
        cut = self._tail.rfind(" ") + 1 or size  # a word that is still coming stays raw
        source = self._tail[:cut]
        rendered = render_markdown(source)
        self._rendered = size
        if rendered == f"<p>{html.escape(source.strip(), quote=False)}</p>\n" or not self._afford(len(rendered)):
            return []
        return [["~", self.item, _units(source), rendered]]


def _units(text: str) -> int:
    """The length in UTF-16 code units, which is how the front end counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _runs(code: str, language: str) -> list[int | str]:
    """``[length, class, length, class, …]`` over ``code``."""
    runs = list[int | str]()
    for kind, text in tokens(code, language):
        runs += [_units(text), kind]
    return runs
