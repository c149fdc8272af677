"""One small token that says "stop", for coroutines and threads alike."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable


class CancelToken:
    """Set once, seen everywhere: the Python form of the manual's ``ctx.signal`` (Manual §7.2).

    Safe to set and to read from any thread. Callbacks run on the thread that calls :meth:`set`, once, in the order
    in which they were added; one that raises does not keep the others from running.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._next_key = 0

    def is_set(self) -> bool:
        """Whether someone asked to stop."""
        return self._event.is_set()

    def set(self) -> None:
        """Ask to stop. Calling it again does nothing."""
        with self._lock:
            if self._event.is_set():
                return
            self._event.set()
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        failures: list[Exception] = []
        for callback in callbacks:
            try:
                callback()
            except Exception as error:
                failures.append(error)
        if failures:
            raise ExceptionGroup("callbacks of a CancelToken failed", failures)

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Run ``callback`` when the token is set, at once if it already is.

        Returns a function that takes the callback off again.
        """
        with self._lock:
            if not self._event.is_set():
                key = self._next_key
                self._next_key += 1
                self._callbacks[key] = callback
                return lambda: self._remove(key)
        callback()
        return lambda: None

    def _remove(self, key: int) -> None:
        with self._lock:
            self._callbacks.pop(key, None)

    def wait(self, timeout: float | None = None) -> bool | Awaitable[bool]:
        """Wait until the token is set, at most ``timeout`` seconds; true when it is.

        In a thread this blocks and returns a ``bool``; where an event loop is running it returns an awaitable, so
        that ``await ctx.cancel.wait()`` never blocks the loop.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._event.wait(timeout)
        return self.wait_async(timeout)

    async def wait_async(self, timeout: float | None = None) -> bool:
        """The coroutine form of :meth:`wait` (``timeout`` in seconds)."""
        if self._event.is_set():
            return True
        loop = asyncio.get_running_loop()
        reached = asyncio.Event()
        remove = self.on_cancel(lambda: loop.call_soon_threadsafe(reached.set))
        try:
            async with asyncio.timeout(timeout):
                await reached.wait()
        except TimeoutError:
            return self._event.is_set()
        finally:
            remove()
        return True
