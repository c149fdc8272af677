"""Cutting a wait short when the user stops the turn."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from zq_notebook.cancel import CancelToken

T = TypeVar("T")


class TurnInterrupted(Exception):
    """The turn's token was set while something was being waited for."""


class UnexpectedCancel(Exception):
    """What was waited for was cancelled, though nobody cancelled the waiting task."""


class InterruptScope:
    """Waits that end with :class:`TurnInterrupted` as soon as a token is set, from whatever thread.

    Nothing is put between the waiting task and what it waits for, so a streamed token costs no extra task switch: the
    task is cancelled at that one wait and uncancelled again, as ``asyncio.timeout`` does. A cancellation that comes
    from outside stays a cancellation, also when it comes at the same moment.
    """

    def __init__(self, cancel: CancelToken) -> None:
        self._cancel = cancel
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Task[object] | None = None
        self._cut: asyncio.Task[object] | None = None
        self._remove = cancel.on_cancel(self._wake)

    def close(self) -> None:
        """Stop listening to the token."""
        self._remove()

    def _wake(self) -> None:
        # A loop that was closed meanwhile has nobody left to wake.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._cut_wait)

    def _cut_wait(self) -> None:
        if self._waiting is not None and self._cut is None:
            self._cut = self._waiting
            self._waiting.cancel()

    def check(self) -> None:
        """Raise :class:`TurnInterrupted` when the token is set."""
        if self._cancel.is_set():
            raise TurnInterrupted

    async def wait(self, start: Callable[[], Awaitable[T]]) -> T:
        """What ``start()`` gives when awaited; :class:`TurnInterrupted` when the token is set before or meanwhile.

        Raises what ``start()`` raises, and :class:`UnexpectedCancel` for a cancellation that nobody asked for.
        """
        self.check()
        task = self._waiting = asyncio.current_task()
        # Code that caught an earlier cancellation and went on leaves a count behind, which is not ours.
        earlier = task.cancelling() if task is not None else 0
        try:
            result = await start()
        except asyncio.CancelledError:
            self._waiting = None
            if self._take_back(earlier):
                raise TurnInterrupted from None
            if task is not None and not task.cancelling():
                raise UnexpectedCancel from None
            raise
        finally:
            self._waiting = None
            cut = self._take_back(earlier)
        if cut:
            raise TurnInterrupted
        return result

    def _take_back(self, earlier: int) -> bool:
        """Take our own cancellation back; false when there is none, or when another one came as well."""
        task, self._cut = self._cut, None
        return task is not None and task.uncancel() <= earlier
