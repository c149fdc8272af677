"""What every way of showing a turn has in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from zq_notebook.engine.approval import ApprovalReply
from zq_notebook.engine.events import Event
from zq_notebook.notebook.transcript_blocks import Footer
from zq_notebook.notebook.view.approval import ApprovalCard

__all__ = ["Answer", "ApprovalCard", "Footer", "TurnView"]

Answer = Callable[[ApprovalReply], None]
"""Called at most once, on the kernel's main thread, with what the user chose."""


class TurnView(Protocol):
    """Shows one turn and keeps its transcript up to date. All methods are called on the kernel's main thread."""

    @property
    def writes_cards(self) -> bool:
        """Whether :meth:`ask` writes the card as text, for an answer typed at the keyboard."""
        ...

    def open(self) -> None:
        """Show the header; called once, first."""
        ...

    def apply(self, events: Sequence[Event]) -> None:
        """Show what happened, in order; called with a batch every 20 ms at most."""
        ...

    def tick(self) -> None:
        """Called every 100 ms, for whatever has to happen without an event."""
        ...

    async def settle(self) -> None:
        """Bring what happened so far on screen now: the main thread is about to be busy for a while."""
        ...

    def ask(self, card: ApprovalCard, answer: Answer) -> None:
        """Show an approval card."""
        ...

    def approval_closed(self, tool_call_id: str, reply: ApprovalReply) -> None:
        """The request was answered, here or elsewhere."""
        ...

    def set_usage(self, tokens: int | None, cost: float | None) -> None:
        """Tokens and US dollars of the turn so far."""
        ...

    def close(self, footer: Footer) -> None:
        """The turn is over: leave what should stay; called once, last."""
        ...
