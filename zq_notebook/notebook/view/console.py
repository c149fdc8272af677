"""A turn in a terminal: text as it comes, one line per tool call, a little colour where the terminal has it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from zq_notebook.engine.approval import ApprovalReply
from zq_notebook.engine.events import Event
from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.transcript_blocks import (
    Block,
    Change,
    Footer,
    NoticeBlock,
    ReasoningBlock,
    TextBlock,
    ToolBlock,
)
from zq_notebook.notebook.transcript_lines import header_words
from zq_notebook.notebook.transcript_plain import footer_plain, join_words, tool_plain
from zq_notebook.notebook.view.approval import ApprovalCard
from zq_notebook.notebook.view.base import Answer
from zq_notebook.text.visible import make_visible

_DIM, _RED, _YELLOW, _BOLD = "2", "31", "33", "1"
_TONES = {"error": _RED, "warning": _YELLOW, "info": _DIM, "user": _BOLD}


class ConsoleView:
    """Writes to ``stream`` (standard output); colours only when it is a terminal."""

    writes_cards = True

    def __init__(self, transcript: Transcript, stream: TextIO | None = None) -> None:
        self.transcript = transcript
        self._stream = stream or sys.stdout
        self._colours = bool(getattr(self._stream, "isatty", lambda: False)())
        self._open_text: Block | None = None
        self._shown_tools = set[int]()

    def open(self) -> None:
        """Write who works, with which model, and how freely."""
        words = header_words(self.transcript.role, self.transcript.model, self.transcript.mode)
        self._write(self._styled(join_words(words), _DIM) + "\n")

    def apply(self, events: Sequence[Event]) -> None:
        """Write what happened."""
        for event in events:
            self._show(self.transcript.apply(event))

    def tick(self) -> None:
        """Nothing here moves."""

    async def settle(self) -> None:
        """Everything is on screen as soon as it has happened."""

    def ask(self, card: ApprovalCard, answer: Answer) -> None:
        """Write everything that would happen; whoever asks for the answer reads it from the keyboard."""
        self._end_text()
        self._write("\n" + self._styled(card.title.replace("`", ""), _BOLD) + "\n" + card.plain_body() + "\n")

    def approval_closed(self, tool_call_id: str, reply: ApprovalReply) -> None:
        """The answer appears on the call's line when the call is over."""
        self._show(self.transcript.approval_answered(tool_call_id, reply))

    def set_usage(self, tokens: int | None, cost: float | None) -> None:
        """Shown at the end."""
        self.transcript.tokens, self.transcript.cost = tokens, cost

    def close(self, footer: Footer) -> None:
        """Write what the turn changed and what it took."""
        self._show(self.transcript.finish(footer))
        self._end_text()
        self._write("\n" + self._styled(footer_plain(footer), _DIM) + "\n")

    def _show(self, changes: Sequence[Change]) -> None:
        for change in changes:
            block = change.block
            if isinstance(block, TextBlock):
                self._show_text(change, block)
            elif isinstance(block, ToolBlock):
                self._show_tool(block)
            elif change.what == "add":
                self._show_notice(block)

    def _show_text(self, change: Change, block: TextBlock) -> None:
        if change.what == "remove":
            self._end_text()
            self._write(self._styled("(the reply broke off and starts again)", _DIM) + "\n")
        elif change.what == "add":
            self._end_text()
            self._write("\n")
            self._open_text = block
            self._write_text(block, block.text)
        elif change.what == "grow":
            self._write_text(block, change.text)

    def _write_text(self, block: TextBlock, text: str) -> None:
        visible = make_visible(text, prose=True)
        self._write(self._styled(visible, _DIM) if isinstance(block, ReasoningBlock) else visible)

    def _end_text(self) -> None:
        if self._open_text is not None:
            self._open_text = None
            self._write("\n")

    def _show_tool(self, tool: ToolBlock) -> None:
        if tool.finished and tool.id not in self._shown_tools:
            self._shown_tools.add(tool.id)
            self._end_text()
            line, _, rest = tool_plain(tool).partition("\n")
            self._write(self._styled(line, _RED if tool.status == "error" else "") + "\n")
            if rest:
                self._write(self._styled(rest, _DIM) + "\n")

    def _show_notice(self, notice: NoticeBlock) -> None:
        self._end_text()
        self._write(self._styled(make_visible(notice.text, prose=True), _TONES.get(notice.tone, "")) + "\n")

    def _styled(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colours and code else text

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
