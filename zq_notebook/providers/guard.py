"""Watching over reads from the network: a stream that falls silent, a turn that is stopped."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

from zq_notebook.cancel import CancelToken
from zq_notebook.errors import StreamError

T = TypeVar("T")


class StreamStopped(Exception):
    """The turn's cancel token was set during a read."""


class ReadGuard:
    """Ends a read that takes too long, or when ``cancel`` is set.

    One timer serves the whole stream: it looks at the clock when it fires and sets itself again, so that a read costs
    no timer of its own.
    """

    def __init__(self, cancel: CancelToken) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader: asyncio.Task[object] | None = None
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._interrupted = False
        self._stopped = False
        self._remove = cancel.on_cancel(lambda: self._loop.call_soon_threadsafe(self._stop))

    async def wait(self, start: Callable[[], Awaitable[T]], seconds: float | None = None) -> T:
        """Await what ``start`` returns, at most ``seconds``.

        Raises StreamError after that time, StreamStopped when the token is set, and whatever the read raises.
        """
        if self._stopped:
            raise StreamStopped
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a stream is read from inside a task")
        cancelling = task.cancelling()
        self._reader = task
        self._deadline = math.inf
        if seconds is not None:
            self._deadline = self._loop.time() + seconds
            if self._timer is None or self._timer.when() > self._deadline:
                self._look_at(self._deadline)
        try:
            return await start()
        except BaseException as error:
            # Closing a connection may turn our interruption into an error of its own.
            if not self._interrupted:
                raise
            self._interrupted = False
            if task.uncancel() > cancelling and isinstance(error, asyncio.CancelledError):
                raise
            if self._stopped:
                raise StreamStopped from None
            raise StreamError(
                f"The model's stream fell silent for {seconds:g} seconds. Send the request again; for a model that "
                "thinks longer than that without a word, raise OPENAI_STREAM_IDLE_MS."
            ) from None
        finally:
            self._reader = None

    def close(self) -> None:
        """Stop watching."""
        self._remove()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._reader is None or self._deadline == math.inf:
            return
        if self._loop.time() < self._deadline:
            self._look_at(self._deadline)
        else:
            self._interrupt()

    def _look_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._look)

    def _stop(self) -> None:
        self._stopped = True
        self._interrupt()

    def _interrupt(self) -> None:
        if self._reader is not None and not self._interrupted:
            self._interrupted = True
            self._reader.cancel()
