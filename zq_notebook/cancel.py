"""One small token that says "stop", for coroutines and threads alike."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import threading
from collections.abc import Awaitable, Callable

logger = logging.getLogger("zq_notebook")


class CancelToken:
    """Set once, seen everywhere: the Python form of the manual's ``ctx.signal`` (Manual §7.2).

    Safe to set and to read from any thread and from a signal handler: there is no lock that the interrupted code could
    be holding, only operations that the interpreter does in one step. Callbacks run on the thread that calls
    :meth:`set`, once, in the order in which they were added; what one raises is logged.
    """

    def __init__(self) -> None:
        self._set = False
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._keys = itertools.count()

    def is_set(self) -> bool:
        """Whether someone asked to stop."""
        return self._set

    def set(self) -> None:
        """Ask to stop. Calling it again does nothing."""
        self._set = True
        for key in list(self._callbacks):
            self._call(key)

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Run ``callback`` when the token is set, at once if it already is.

        Returns a function that takes the callback off again.
        """
        key = next(self._keys)
        self._callbacks[key] = callback
        if self._set:
            # Set before or just now: whoever takes the callback out first runs it.
            self._call(key)
        return lambda: self._remove(key)

    def _call(self, key: int) -> None:
        callback = self._callbacks.pop(key, None)
        if callback is None:
            return
        try:
            callback()
        except Exception:
            # Whoever pressed Stop is not to blame for it and must get through to the other callbacks.
            logger.exception("a callback of a CancelToken failed")

    def _remove(self, key: int) -> None:
        self._callbacks.pop(key, None)

    def wait(self, timeout: float | None = None) -> bool | Awaitable[bool]:
        """Wait until the token is set, at most ``timeout`` seconds; true when it is.

        In a thread this blocks and returns a ``bool``; where an event loop is running it returns an awaitable, so
        that ``await ctx.cancel.wait()`` never blocks the loop.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._wait_blocking(timeout)
        return self.wait_async(timeout)

    def _wait_blocking(self, timeout: float | None) -> bool:
        gate = threading.Lock()
        gate.acquire()
        remove = self.on_cancel(gate.release)
        try:
            gate.acquire(timeout=-1 if timeout is None else min(max(0.0, timeout), threading.TIMEOUT_MAX))
        finally:
            remove()
        return self._set

    async def wait_async(self, timeout: float | None = None) -> bool:
        """The coroutine form of :meth:`wait` (``timeout`` in seconds)."""
        if self._set:
            return True
        loop = asyncio.get_running_loop()
        reached = asyncio.Event()

        def wake() -> None:
            # A loop that was closed meanwhile has nobody left to wake.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(reached.set)

        remove = self.on_cancel(wake)
        try:
            async with asyncio.timeout(timeout):
                await reached.wait()
        except TimeoutError:
            return self._set
        finally:
            remove()
        return True
