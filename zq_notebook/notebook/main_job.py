"""One piece of work for the main thread: its result, and how it is stopped."""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

from zq_notebook.errors import ToolError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: How long the main thread's loop may take to answer before it counts as busy with synchronous code, in seconds.
_ANSWER_TIME = 0.03


class JobOwner(Protocol):
    """What a job needs from the thread that runs it."""

    def drop(self, job: MainJob[Any]) -> bool: ...
    def cancel(self, job: MainJob[Any], seen: Callable[[], object]) -> None: ...
    def signal(self, job: MainJob[Any]) -> None: ...
    def press_in_code(self, caller_loop: asyncio.AbstractEventLoop) -> None: ...


class MainJob(Generic[T]):
    """Handle of a job. Made by :meth:`MainThread.submit` on the loop of the thread that waits for the result.

    ``stop_reason`` is ``None`` as long as nobody stopped it, else who did: ``"user"`` (the ■ button), or the reason
    given to :meth:`stop`. ``abandoned`` is true when it ignored every interruption and is still running.
    """

    def __init__(self, owner: JobOwner, call: Callable[[], T | Awaitable[T]], name: str) -> None:
        self.call = call
        self.name = name
        self.running = False
        self.task: asyncio.Task[None] | None = None
        self.stop_reason: str | None = None
        self.abandoned = False
        self._interrupted_at: float | None = None
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._outcome: concurrent.futures.Future[T] = concurrent.futures.Future()

    # --- the side that waits ---

    def done(self) -> bool:
        """Whether there is a result or an exception."""
        return self._outcome.done()

    async def result(self) -> T:
        """Wait for the result. Cancelling this does not stop the job; :meth:`stop` does."""
        await self.wait(None)
        return self._outcome.result()

    async def wait(self, seconds: float | None) -> bool:
        """Wait at most ``seconds``; true when the job is done."""
        reached = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wake(_: concurrent.futures.Future[T]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(reached.set)

        self._outcome.add_done_callback(wake)
        try:
            async with asyncio.timeout(seconds):
                await reached.wait()
        except TimeoutError:
            return self._outcome.done()
        return True

    async def stop(self, reason: str, *, tries: int = 3, wait: float = 1.0) -> bool:
        """Interrupt the job, up to ``tries`` times with ``wait`` seconds for it to end; true when it has ended.

        A coroutine is cancelled where it awaits; synchronous code gets KeyboardInterrupt. Code may swallow both:
        then the answer is false, and the job goes on running.
        """
        if self.done():
            return True
        self.stop_reason = self.stop_reason or reason
        if self._owner.drop(self):
            return True
        if self._interrupted_at is not None and await self.wait(self._interrupted_at + wait - time.monotonic()):
            # A second interruption would hit the code while it cleans up after ■.
            return True
        for _ in range(tries):
            answered = asyncio.Event()
            self._owner.cancel(self, lambda seen=answered: self._tell(seen))  # type: ignore[misc]
            if await self.wait(_ANSWER_TIME):
                return True
            if not answered.is_set():
                self._owner.signal(self)
            if await self.wait(wait):
                return True
        self.abandoned = not self.done()
        return self.done()

    def _tell(self, event: asyncio.Event) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(event.set)

    # --- the main thread's side ---

    def succeed(self, value: T) -> None:
        """Hand over the result, unless the job has already been answered for."""
        if not self._outcome.done():
            self._outcome.set_result(value)

    def fail(self, error: BaseException) -> None:
        """Hand over an exception, unless the job has already been answered for."""
        if not self._outcome.done():
            self._outcome.set_exception(error)

    def fail_interrupted(self) -> None:
        """Say that the work did not come to its end. Never a CancelledError: the one who waits was not cancelled."""
        self.fail(ToolError(f"{self.name} was interrupted before it was done."))

    def note_press(self) -> None:
        """■ was pressed, and is interrupting this job (may be called inside the signal handler)."""
        self.stop_reason = self.stop_reason or "user"
        self._interrupted_at = self._interrupted_at or time.monotonic()

    def pressed_in_code(self) -> None:
        """■ was pressed while this job's code ran (called inside the signal handler)."""
        self.note_press()
        self._owner.press_in_code(self._loop)
