"""One turn in one cell: the engine's events come in from its thread, the view is driven on the main thread."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zq_notebook.engine.events import AssistantMessage, ErrorEvent, Event, EventType, TurnEnd
from zq_notebook.engine.messages import TokenUsage
from zq_notebook.engine.turn import TurnEngine
from zq_notebook.notebook.engine_thread import ENGINE_THREAD
from zq_notebook.notebook.main_thread import MainThread
from zq_notebook.notebook.redaction import EventRedactor
from zq_notebook.notebook.result import TurnResult
from zq_notebook.notebook.view.base import TurnView
from zq_notebook.text.redact import shared
from zq_notebook.text.terminal import plain
from zq_notebook.text.visible import make_visible

FLUSH_SECONDS = 0.02
_MAX_ERROR_CHARS = 2_000
_STREAMED = (EventType.ASSISTANT_DELTA, EventType.REASONING_DELTA)


def one_paragraph(text: str) -> str:
    """An error's text, which may come from anywhere, on one line that can be shown below a cell."""
    line = make_visible(" ".join(plain(text).split()), prose=True)
    return line if len(line) <= _MAX_ERROR_CHARS else f"{line[:1_500]} … {line[-400:]}"


class TurnCell:
    """Plays one turn. Made and awaited in the cell's coroutine; every output keeps that cell's context.

    Text is passed to the view every 20 ms at most (which may gather more of it), everything else at once. ``price``
    gives a request's cost in US dollars, ``None`` when unknown. ``kernel_interrupted`` says whether ■ was pressed.
    """

    def __init__(
        self, engine: TurnEngine, view: TurnView, main: MainThread, price: Callable[[TokenUsage], float | None]
    ) -> None:
        self._engine = engine
        self._view = view
        self._main = main
        self._price = price
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._queue: deque[Event | Callable[[], object]] = deque()
        self._wanted = False
        self._redactor = EventRedactor()
        self._timer: asyncio.TimerHandle | None = None
        self._started = time.monotonic()
        self._error_type = ""
        self._price_known = True
        self.result = TurnResult(status="error")
        self.kernel_interrupted = False
        self._stopping = False
        self._over = False

    @property
    def elapsed(self) -> float:
        """Seconds since the turn began."""
        return time.monotonic() - self._started

    @property
    def error_type(self) -> str:
        """The type of the error that ended the turn, empty if none did."""
        return self._error_type

    def stop(self) -> None:
        """Stop the turn, also one that has not quite begun; callable from any thread."""
        self._stopping = True
        self._engine.request_interrupt()

    def _kernel_interrupted(self) -> None:
        self.kernel_interrupted = True
        self.stop()

    async def _settle(self) -> None:
        self._flush()
        await self._view.settle()

    def on_main(self, function: Callable[[], object]) -> None:
        """Run ``function`` soon on the main thread, in this cell's context.

        Called on the engine's thread it keeps its place among the events: after those before it, before those behind.
        """
        self._queue.append(function)
        self._loop.call_soon_threadsafe(self._flush, context=self._context)

    async def play(
        self, text: str, attachments: Sequence[Mapping[str, Any]], refs: Sequence[Mapping[str, Any]]
    ) -> TurnResult:
        """Run the turn to its end and return its result.

        Raises what the engine raises, after the view has seen every event.
        """
        turn = ENGINE_THREAD.submit(self._consume(text, attachments, refs))
        try:
            await self._main.serve(
                turn,
                on_tick=self._view.tick,
                on_interrupt=self._kernel_interrupted,
                before_job=self._settle,
                hold=True,
            )
        finally:
            if not turn.done():
                # Stopped by force: the engine ends on its own, nothing of it reaches this cell any more.
                self._engine.request_interrupt()
                self.result.status = "interrupted"
            self._flush()
            self._over = True
        if turn.done():
            turn.result()
        return self.result

    async def _consume(
        self, text: str, attachments: Sequence[Mapping[str, Any]], refs: Sequence[Mapping[str, Any]]
    ) -> None:
        """On the engine's thread: take each event as it comes."""
        async for event in self._engine.run(text, attachments=attachments or None, refs=refs or None):
            if self._stopping:
                self._engine.request_interrupt()
            if self._over:
                continue
            self._note(event)
            self._queue.append(event)
            streamed = event.type in _STREAMED
            if not streamed or not self._wanted:
                self._wanted = True
                self._loop.call_soon_threadsafe(self._schedule, not streamed, context=self._context)

    def _schedule(self, at_once: bool) -> None:
        if at_once:
            self._flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(FLUSH_SECONDS, self._flush, context=self._context)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._over:
            return
        self._wanted = False
        batch: list[Event] = []
        while self._queue:
            item = self._queue.popleft()
            if not isinstance(item, Event):
                self._apply(batch)
                batch = []
                item()
            # The paragraph of a failed turn stands below the transcript, as the cell's own error.
            elif item.type is not EventType.ERROR:
                batch.append(item)
        self._apply(batch)

    def _apply(self, batch: list[Event]) -> None:
        if not batch:
            return
        self._view.apply(self._redactor.mask(batch))
        if any(event.type is EventType.ASSISTANT_MESSAGE for event in batch):
            self._view.set_usage(self.result.usage.total_tokens, self.result.cost)

    def _note(self, event: Event) -> None:
        result = self.result
        if isinstance(event, AssistantMessage):
            result.text = shared().redact(event.text)
            if event.usage is not None:
                self._add_usage(TokenUsage(**event.usage))
        elif isinstance(event, ErrorEvent):
            result.error = one_paragraph(shared().redact(event.error))
            self._error_type = event.error_type
        elif isinstance(event, TurnEnd):
            result.status = event.status
            result.iterations = event.iterations
            result.produced_files = list(event.produced_files)

    def _add_usage(self, usage: TokenUsage) -> None:
        self.result.usage += usage
        price = self._price(usage) if self._price_known else None
        if price is None:
            # A sum that lacks a part would look like the whole.
            self._price_known, self.result.cost = False, None
        else:
            self.result.cost = (self.result.cost or 0.0) + price
