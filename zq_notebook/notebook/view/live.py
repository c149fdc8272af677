"""A turn in a browser: one widget that streams, asks and stops, and the transcript in its place afterwards."""

from __future__ import annotations

import asyncio
import contextvars
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from zq_notebook.engine.approval import ApprovalOutcome, ApprovalReply
from zq_notebook.engine.events import Event
from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.transcript_blocks import Footer
from zq_notebook.notebook.transcript_bundle import bundle
from zq_notebook.notebook.view.approval import ApprovalCard
from zq_notebook.notebook.view.base import Answer
from zq_notebook.notebook.view.cell_stream import CellStream

if TYPE_CHECKING:
    from zq_notebook.notebook.view.widget import CellWidget

# How long the first thing that keeps the main thread busy waits for the page to draw the cell.
FIRST_DRAW_SECONDS = 1.5


class LiveView:
    """The view of one turn in JupyterLab, Notebook 7 and other front ends with widgets.

    ``on_stop`` is called, on the kernel's main thread, when the user presses Stop. Until a front end says that it has
    drawn the widget nothing is sent; from then on it gets everything, also after its page was reloaded.
    """

    writes_cards = False

    def __init__(self, transcript: Transcript, on_stop: Callable[[], object]) -> None:
        self.transcript = transcript
        self.display_id = uuid.uuid4().hex
        self._on_stop = on_stop
        self._stream = CellStream(transcript, self._send)
        self._widget: CellWidget | None = None
        self._pages = list[str]()
        self._ready = asyncio.Event()
        self._waited = False
        self._answers = dict[str, tuple[ApprovalCard, Answer]]()
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context: contextvars.Context | None = None

    @staticmethod
    def available() -> str | None:
        """``None`` when widgets can be shown, else a sentence that says what is missing and how to get it."""
        try:
            import anywidget  # noqa: F401
        except ImportError as error:
            return (
                f"The live view needs widgets, and {error.name or 'anywidget'} is not installed. Install it with "
                "%pip install anywidget and restart the kernel; until then the answer appears piece by piece, and "
                "approvals are asked at the keyboard."
            )
        return None

    @property
    def acknowledged(self) -> bool:
        """Whether a page has drawn this cell."""
        return self._ready.is_set()

    async def wait_ready(self, timeout: float) -> bool:
        """Wait at most ``timeout`` seconds until a page has drawn this cell; returns whether one has."""
        try:
            async with asyncio.timeout(timeout):
                await self._ready.wait()
        except TimeoutError:
            return False
        return True

    def open(self) -> None:
        """Display the widget."""
        from IPython.display import display

        from zq_notebook.notebook.view.widget import CellWidget

        try:
            self._loop, self._context = asyncio.get_running_loop(), contextvars.copy_context()
        except RuntimeError:  # called from synchronous code: messages are handled where they arrive
            self._loop = None
        self._widget = CellWidget(self._on_message)
        placeholder = self._widget.view_bundle("The agent is working. Its answer appears here when it is done.")
        display(placeholder, raw=True, display_id=self.display_id)  # type: ignore[no-untyped-call]

    def apply(self, events: Sequence[Event]) -> None:
        """Show what happened. Text alone may wait a few hundredths of a second for more."""
        for event in events:
            self._stream.take(self.transcript.apply(event))
        self._flush_when_due()

    def tick(self) -> None:
        """Send what is waiting; the clocks run in the page."""
        self._flush_when_due()

    async def settle(self) -> None:
        """Send what is waiting. A page that is only just being drawn gets a moment to come, once."""
        if not self.acknowledged and not self._waited:
            self._waited = True
            await self.wait_ready(FIRST_DRAW_SECONDS)
        if self.acknowledged:
            self._stream.flush()

    def ask(self, card: ApprovalCard, answer: Answer) -> None:
        """Show an approval card; the first click on one of its buttons calls ``answer``."""
        self._answers[card.tool_call_id] = card, answer
        self._stream.take(self.transcript.approval_asked(card.request))
        self._stream.ask(card)
        self._flush_when_due()

    def approval_closed(self, tool_call_id: str, reply: ApprovalReply) -> None:
        """Fold the card into its tool's line."""
        self._answers.pop(tool_call_id, None)
        self._stream.answered(tool_call_id)
        self._stream.take(self.transcript.approval_answered(tool_call_id, reply))
        self._flush_when_due()

    def set_usage(self, tokens: int | None, cost: float | None) -> None:
        """Show tokens and US dollars in the header."""
        self.transcript.tokens, self.transcript.cost = tokens, cost
        self._stream.refresh_head()
        self._flush_when_due()

    def close(self, footer: Footer) -> None:
        """Put the transcript in the widget's place, which stays in the notebook, and end the widget."""
        from IPython.display import update_display

        self._stream.take(self.transcript.finish(footer))
        self._stream.finish(footer)
        self._flush_when_due()
        if self._timer is not None:
            self._timer.cancel()
        final = bundle(self.transcript)
        update_display(final, raw=True, display_id=self.display_id)  # type: ignore[no-untyped-call]
        if self._widget is not None:
            if len(self._pages) > 1:
                self._send({"final": final, "model": self._widget.model_id, "first": self._pages[0]})
            self._widget.close()
            self._widget = None

    # -- to and from the page -------------------------------------------------------------------------------------

    def _flush_when_due(self) -> None:
        stream = self._stream
        if not self.acknowledged:
            stream.drop()
            return
        if not stream.waiting:
            return
        due = stream.due_in()
        if due <= 0:
            stream.flush()
        elif self._timer is None:
            try:
                self._timer = asyncio.get_running_loop().call_later(due, self._on_timer)
            except RuntimeError:  # called from synchronous code: nobody would wake us
                stream.flush()

    def _on_timer(self) -> None:
        self._timer = None
        if self.transcript.footer is None:
            self._flush_when_due()

    def _send(self, message: dict[str, Any]) -> None:
        if self._widget is not None:
            self._widget.send(message)

    def _on_message(self, message: dict[str, Any]) -> None:
        """A message came, possibly on a subshell's thread.

        It is handled on the cell's loop and in the cell's context. The kernel sends the next message of a comm to
        whichever subshell last sent on it, so an answer from in here would divert the messages after it.
        """
        if self._loop is None:
            self._receive(message)
        else:
            self._loop.call_soon_threadsafe(self._receive, message, context=self._context)

    def _receive(self, message: dict[str, Any]) -> None:
        match message:
            case {"t": "code"} if self._widget is not None:
                self._widget.send_code()
            case {"t": "ready" | "resync", "view": str(view), "page": str(page)}:
                if page not in self._pages:
                    self._pages.append(page)
                if not self.acknowledged:
                    self._stream.drop()
                    self._ready.set()
                self._stream.snapshot(view, self._widget.model_id if self._widget is not None else "")
            case {"t": "stop"}:
                self._on_stop()
            case {"t": "answer", "call": str(call), "outcome": str(outcome)}:
                self._answer(call, outcome, message.get("reason"))

    def _answer(self, call: str, outcome: str, reason: object) -> None:
        card, answer = self._answers.get(call, (None, None))
        if card is None or answer is None or outcome not in set(ApprovalOutcome):
            return
        if outcome == ApprovalOutcome.ALWAYS_COMMAND and not card.can_always_command:
            return
        del self._answers[call]
        said = reason.strip() if isinstance(reason, str) else ""
        answer(ApprovalReply(ApprovalOutcome(outcome), reason=said or None, answered_by="card"))
