"""Everything that the front end has to know about a running cell, as numbered messages of small operations.

Pure: messages go to ``send``, a widget or a list. Besides the text operations of ``text_stream`` there are::

    ["head", {...}]  ["item", id, kind]  ["end", id, words]  ["tool", id, {changed fields}]  ["note", id, tone, text]
    ["ask", id, {...}]  ["answered", id]  ["del", id]  ["foot", {...}]  ["say", words]  ["reset"]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zq_notebook.notebook.arguments import main_argument
from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.transcript_blocks import Change, Footer, ReasoningBlock, TextBlock, ToolBlock
from zq_notebook.notebook.transcript_html import image_html, part_html, tool_body_html
from zq_notebook.notebook.transcript_lines import (
    footer_left,
    footer_right,
    header_words,
    tool_line,
    tool_mark,
    usage_words,
)
from zq_notebook.notebook.view.approval import ApprovalCard
from zq_notebook.notebook.view.text_stream import Op, TextStream
from zq_notebook.notebook.words import thought_words, turn_words
from zq_notebook.text.visible import make_visible

Send = Callable[[dict[str, Any]], None]

# Each message costs about 650 bytes around its content. A fast stream is sent in fewer, larger pieces than a slow one.
SLOW_HOLD = 0.04
FAST_HOLD = 0.09
FAST_BYTES_PER_SECOND = 2000
# When no more text comes for so long, the stream has paused and what is there is shown.
PAUSE = 0.06

# Renderings that are only for the meantime: so many bytes per second on average, and so many at once.
SPARE_RATE = 2000
SPARE_BURST = 6000

SNAPSHOT_PART = 1_000_000


class CellStream:
    """The state of one cell's front end, and the messages that keep it current. ``clock`` gives seconds."""

    def __init__(self, transcript: Transcript, send: Send, clock: Callable[[], float] = time.monotonic) -> None:
        self.transcript = transcript
        self._send = send
        self._clock = clock
        self._started = clock()
        self._ops = list[Op]()
        self._urgent = False
        self._number = 0
        self._texts = dict[int, TextStream]()
        self._tools = dict[int, dict[str, Any]]()
        self._asked = dict[int, tuple[ApprovalCard, dict[str, Any]]]()
        self._head = dict[str, Any]()
        self._foot: dict[str, Any] | None = None
        self._last_sent = self._last_taken = self._started
        self._recent = 0.0
        self._spare = float(SPARE_BURST)
        self._spare_at = self._started

    # -- what changes ---------------------------------------------------------------------------------------------

    def take(self, changes: Sequence[Change]) -> None:
        """Note changes of the transcript; nothing is sent before :meth:`flush`."""
        self._last_taken = self._clock()
        for change in changes:
            block = change.block
            if change.what == "grow":
                self._texts[block.id].append(change.text)
                self._recent += len(change.text)
            elif change.what == "remove":
                self._drain()
                self._texts.pop(block.id, None)
                self._push(["del", block.id])
            elif isinstance(block, TextBlock):
                self._take_text(change.what == "add", block)
            elif isinstance(block, ToolBlock):
                self._drain()
                self._push_tool(block)
            else:
                self._drain()
                self._push(["note", block.id, block.tone, make_visible(block.text, prose=True)])

    def ask(self, card: ApprovalCard) -> None:
        """Show an approval card under its tool."""
        tool = self.transcript.tool(card.tool_call_id)
        if tool is None:
            return
        self._drain()
        shown = _card(card)
        self._asked[tool.id] = card, shown
        self._push_tool(tool)
        self._push(["ask", tool.id, shown])
        self.refresh_head()
        self._push(["say", f"Waiting for you: {card.title.replace('`', '')}"])

    def answered(self, tool_call_id: str) -> None:
        """Take the card away."""
        tool = self.transcript.tool(tool_call_id)
        if tool is not None and self._asked.pop(tool.id, None) is not None:
            self._push(["answered", tool.id])
            self.refresh_head()

    def refresh_head(self) -> None:
        """Usage or state may have changed."""
        head = self._head_now()
        if head != self._head:
            self._head = head
            self._ops.append(["head", {**head, "elapsed": self._clock() - self._started}])

    def finish(self, footer: Footer) -> None:
        """Show the footer and stop the clock."""
        self._drain(final=True)
        for tool_id in list(self._asked):
            del self._asked[tool_id]
            self._push(["answered", tool_id])
        self._foot = {"left": footer_left(footer), "right": footer_right(footer)}
        self.refresh_head()
        self._push(["foot", self._foot])
        self._push(["say", f"The agent's turn is over: {turn_words(footer.status)}."])

    # -- what is sent ---------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> bool:
        """Whether something is noted and not sent."""
        return bool(self._ops) or any(text.pending for text in self._texts.values())

    def due_in(self) -> float:
        """Seconds until what is waiting should be sent; 0 means now."""
        if self._urgent:
            return 0.0
        now = self._clock()
        elapsed = max(now - self._last_sent, 0.001)
        hold = FAST_HOLD if self._recent / elapsed > FAST_BYTES_PER_SECOND else SLOW_HOLD
        return max(0.0, min(hold - elapsed, PAUSE - (now - self._last_taken)))

    def flush(self) -> None:
        """Send what is waiting, as one message."""
        self._drain()
        if self._ops:
            self._number += 1
            message = {"n": self._number, "o": self._ops}
            self._ops, self._urgent, self._recent = [], False, 0.0
            self._last_sent = self._clock()
            self._send(message)

    def drop(self) -> None:
        """Forget what is waiting: nobody is there to see it, and a later :meth:`snapshot` has it all."""
        self._drain()
        self._ops, self._urgent, self._recent = [], False, 0.0
        self._last_sent = self._clock()

    def snapshot(self, view: str, model: str = "") -> None:
        """Send everything to one view: it has just come, or has lost a message. ``model`` is the widget's id."""
        self.flush()
        ops: list[Op] = [["reset"], ["head", {**self._head_now(), "elapsed": self._clock() - self._started}]]
        for block in self.transcript.blocks:
            ops += self._block_snapshot(block)
        if self._foot is not None:
            ops.append(["foot", self._foot])
        parts = _parts(ops)
        for number, part in enumerate(parts, 1):
            self._send({"to": view, "model": model, "n": self._number, "last": number == len(parts), "o": part})

    def _block_snapshot(self, block: Any) -> list[Op]:
        if isinstance(block, TextBlock):
            kind = "reasoning" if isinstance(block, ReasoningBlock) else "text"
            ops: list[Op] = [["item", block.id, kind]]
            if isinstance(block, ReasoningBlock):
                ops.append(["+", block.id, block.text])
            else:
                ops += self._texts[block.id].snapshot() if block.id in self._texts else []
            return [*ops, *([_end(block)] if block.done else [])]
        if isinstance(block, ToolBlock):
            ops = [["tool", block.id, _tool(block)]]
            if block.id in self._asked:
                ops.append(["ask", block.id, self._asked[block.id][1]])
            return ops
        return [["note", block.id, block.tone, make_visible(block.text, prose=True)]]

    # -- parts ----------------------------------------------------------------------------------------------------

    def _take_text(self, added: bool, block: TextBlock) -> None:
        self._drain()
        if added:
            kind = "reasoning" if isinstance(block, ReasoningBlock) else "text"
            self._push(["item", block.id, kind])
            stream = self._texts[block.id] = TextStream(block.id, self._afford)
            stream.append(block.text)
            if not block.done:
                return
        stream = self._texts[block.id]
        if isinstance(block, ReasoningBlock):
            self._ops += stream.raw()
        elif block.done:
            self._ops += stream.drain(final=True)
        else:
            self._ops += stream.replace(block.text)
        if block.done:
            self._push(_end(block))

    def _push(self, op: Op) -> None:
        self._ops.append(op)
        self._urgent = True

    def _push_tool(self, tool: ToolBlock) -> None:
        now, before = _tool(tool), self._tools.get(tool.id, {})
        changed = {key: value for key, value in now.items() if before.get(key) != value}
        self._tools[tool.id] = now
        if changed:
            self._push(["tool", tool.id, changed])
        if tool.status in {"error", "denied"} and before.get("status") != tool.status:
            self._push(["say", f"{tool.name}: {now['words'] or now['state']}"])

    def _drain(self, *, final: bool = False) -> None:
        for block_id, stream in self._texts.items():
            if stream.pending:
                block = self._block(block_id)
                self._ops += stream.raw() if isinstance(block, ReasoningBlock) else stream.drain(final=final)

    def _block(self, block_id: int) -> object:
        return next((block for block in reversed(self.transcript.blocks) if block.id == block_id), None)

    def _afford(self, size: int) -> bool:
        now = self._clock()
        self._spare = min(SPARE_BURST, self._spare + (now - self._spare_at) * SPARE_RATE)
        self._spare_at = now
        if size > self._spare:
            return False
        self._spare -= size
        return True

    def _head_now(self) -> dict[str, Any]:
        transcript = self.transcript
        state = "done" if self._foot is not None else "waiting for you" if self._asked else "working"
        return {
            "words": header_words(transcript.role, transcript.model, transcript.mode),
            "usage": usage_words(transcript.tokens, transcript.cost),
            "state": state,
        }


def _end(block: TextBlock) -> Op:
    return ["end", block.id, thought_words(block.seconds) if isinstance(block, ReasoningBlock) else ""]


def _tool(tool: ToolBlock) -> dict[str, Any]:
    mark, state = tool_mark(tool)
    # While a card asks, it shows the arguments; the line below it need not repeat them.
    body = "" if tool.status in {"proposed", "waiting"} else tool_body_html(tool)
    return {
        "name": make_visible(tool.name),
        "arg": main_argument(tool.arguments, 200),
        "status": tool.status,
        "mark": mark,
        "state": state,
        "words": " · ".join(tool_line(tool)),
        "body": body,
        "images": "".join(image_html(image, tool.name) for image in tool.images),
    }


def _card(card: ApprovalCard) -> dict[str, Any]:
    buttons = [["once", "Allow once"], ["always_tool", "Always this tool"]]
    if card.can_always_command:
        buttons.append(["always_command", "Always this command"])
    parts: list[Mapping[str, Any]] = [
        {"html": part_html(part), "lines": part.text.rstrip("\n").count("\n") + 1} for part in card.parts
    ]
    return {
        "call": card.tool_call_id,
        "title": card.title,
        "why": card.why,
        "reason": make_visible(card.reason),
        "parts": parts,
        "buttons": buttons,
    }


def _parts(ops: Sequence[Op]) -> list[list[Op]]:
    """``ops`` in groups small enough for one message each."""
    parts, size = [list[Op]()], 0
    for op in ops:
        weight = sum(len(str(value)) for value in op)
        if parts[-1] and size + weight > SNAPSHOT_PART:
            parts.append([])
            size = 0
        parts[-1].append(op)
        size += weight
    return parts
