"""A turn without a browser that can be relied on: each piece is displayed once, when it is complete.

For nbclient, nbconvert and nbval, and wherever widgets are missing. Nothing is updated or cleared, and nothing differs
from run to run (no times, durations or ids), so that a strict comparison of outputs succeeds for the same script.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zq_notebook.engine.approval import ApprovalReply
from zq_notebook.engine.events import Event
from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.transcript_blocks import Block, Footer, ToolBlock
from zq_notebook.notebook.transcript_lines import header_words
from zq_notebook.notebook.transcript_markdown import block_markdown, footer_markdown, header_markdown
from zq_notebook.notebook.transcript_pictures import image_source
from zq_notebook.notebook.transcript_plain import block_plain, footer_plain, join_words
from zq_notebook.notebook.view.approval import ApprovalCard
from zq_notebook.notebook.view.base import Answer
from zq_notebook.notebook.words import approval_sentence
from zq_notebook.toolio import ImageData

Publish = Callable[[Mapping[str, Any]], None]


def publish_bundle(bundle: Mapping[str, Any]) -> None:
    """Show a MIME bundle as an output of the running cell."""
    from IPython.display import publish_display_data

    publish_display_data(dict(bundle))  # type: ignore[no-untyped-call]


class PlainView:
    """Append-only output; ``publish`` takes one MIME bundle."""

    writes_cards = False

    def __init__(self, transcript: Transcript, publish: Publish = publish_bundle) -> None:
        self.transcript = transcript
        self._publish = publish
        self._shown = 0

    def open(self) -> None:
        """Show who works, with which model, and how freely."""
        transcript = self.transcript
        words = header_words(transcript.role, transcript.model, transcript.mode)
        self._show(header_markdown(transcript.role, transcript.model, transcript.mode), join_words(words))

    def apply(self, events: Sequence[Event]) -> None:
        """Show the blocks that these events completed."""
        for event in events:
            self.transcript.apply(event)
        self._show_settled()

    def tick(self) -> None:
        """Nothing here moves."""

    async def settle(self) -> None:
        """Everything is on screen as soon as it has happened."""

    def ask(self, card: ApprovalCard, answer: Answer) -> None:
        """Nobody can answer here; the answer of the policy is shown with the call."""

    def approval_closed(self, tool_call_id: str, reply: ApprovalReply) -> None:
        """Keep the answer for the call's line."""
        self.transcript.approval_answered(tool_call_id, reply)
        self._show_settled()

    def set_usage(self, tokens: int | None, cost: float | None) -> None:
        """Usage differs from run to run, so it is kept but not shown."""
        self.transcript.tokens, self.transcript.cost = tokens, cost

    def close(self, footer: Footer) -> None:
        """Show the rest and what the turn changed."""
        self.transcript.finish(footer)
        self._show_settled()
        self._show(footer_markdown(footer, bare=True), footer_plain(footer, bare=True))

    def _show_settled(self) -> None:
        settled = self.transcript.settled
        for block in settled[self._shown :]:
            self._show_block(block)
        self._shown = len(settled)

    def _show_block(self, block: Block) -> None:
        markdown, plain = block_markdown(block, bare=True, images=False), block_plain(block, bare=True)
        if isinstance(block, ToolBlock) and block.reply is not None:
            sentence = approval_sentence(block.name, block.reply)
            markdown, plain = f"{sentence}\n\n{markdown}", f"{sentence.replace('`', '')}\n{plain}"
        self._show(markdown, plain)
        if isinstance(block, ToolBlock):
            for image in block.images:
                self._show_image(image, block.name)

    def _show_image(self, image: ImageData, tool_name: str) -> None:
        if image_source(image) is not None:
            encoded = base64.b64encode(image.data).decode()
            self._publish({image.mime_type: encoded, "text/plain": image.alt or f"Picture from {tool_name}"})

    def _show(self, markdown: str, plain: str) -> None:
        if plain.strip():
            self._publish({"text/markdown": markdown, "text/plain": plain})
