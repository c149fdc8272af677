"""The bridge between the engine's thread and the kernel's main thread (design.md §2).

The ``%%agent`` cell is a coroutine on the kernel's own loop. While it waits in :meth:`MainThread.serve`, the engine,
which lives on a thread and loop of its own, hands it work: code to run, variables to look at. One piece at a time, in
order; results and exceptions travel back; cancelling the one who waits interrupts the work.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from zq_notebook.errors import AgentError
from zq_notebook.notebook.main_job import MainJob
from zq_notebook.notebook.sigint import armed, router
from zq_notebook.text import logs

logger = logs.logger("zq_notebook.notebook")
T = TypeVar("T")

# A cancellation that comes this soon after the cell began to wait is ■, pressed just before.
EARLY_SECONDS = 0.1

#: A second press of ■ ends the wait by force, but leaves what the first one stopped so long to end in order, seconds.
FORCE_SECONDS = 1.0

#: How long a job may wait for a cell to start to serve, in seconds.
_WAIT_FOR_CELL = 0.5


class MainThread:
    """Runs jobs on the main thread for other threads, while a coroutine there serves them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[MainJob[Any]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waker: asyncio.Future[None] | None = None
        self._current: MainJob[Any] | None = None
        self._on_interrupt: Callable[[], object] | None = None
        self._before_job: Callable[[], Awaitable[object]] | None = None
        self._context = contextvars.Context()
        self._presses = 0
        self._first_press = 0.0
        self._cancelled = False
        self._held = False
        self._early_until = 0.0

    # --- the engine's side ---

    @property
    def serving(self) -> bool:
        """Whether a cell is waiting here and takes work."""
        return self._loop is not None

    async def run(self, call: Callable[[], T | Awaitable[T]], *, name: str = "") -> T:
        """Have ``call`` done on the main thread and wait for what it returns.

        ``call`` takes no arguments; a coroutine that it returns is awaited on the kernel's loop. ``name`` appears in
        error messages. Cancelling the caller interrupts the work, synchronous code included.

        Raises what ``call`` raises; ``AgentError`` when no cell is waiting (any more), or when the main thread is
        still held by earlier code that ignored its interruption; ``ToolError`` when the work was interrupted.
        """
        job = self.submit(call, name=name)
        try:
            return await job.result()
        except asyncio.CancelledError:
            await job.stop("cancelled")
            raise

    def submit(self, call: Callable[[], T | Awaitable[T]], *, name: str = "") -> MainJob[T]:
        """Queue ``call`` and return its handle, for a caller that wants a time limit; needs a running loop."""
        job: MainJob[T] = MainJob(self, call, name or getattr(call, "__name__", "work"))
        with self._lock:
            if self._current is not None and self._current.abandoned:
                raise AgentError(
                    f"The kernel's main thread is still busy with {self._current.name}, which ignored its "
                    "interruption. Nothing else can run there until it ends, or until the kernel is restarted."
                )
            self._queue.append(job)
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._wake)
            else:
                # The engine may be faster than the cell that has just started it and is about to serve.
                asyncio.get_running_loop().call_later(_WAIT_FOR_CELL, self._expire, job)
        return job

    def _expire(self, job: MainJob[Any]) -> None:
        with self._lock:
            if self._loop is not None or job not in self._queue:
                return
            self._queue.remove(job)
        job.fail(
            AgentError(
                "The cell that the agent works for has ended, so nothing can be run in the notebook any more. Start a "
                "new %%agent cell to go on."
            )
        )

    # --- called by MainJob ---

    def drop(self, job: MainJob[Any]) -> bool:
        """Take ``job`` out of the queue; false when it has already begun."""
        with self._lock:
            if job not in self._queue:
                return False
            self._queue.remove(job)
        job.fail_interrupted()
        return True

    def cancel(self, job: MainJob[Any], seen: Callable[[], object]) -> None:
        """Cancel ``job`` where it awaits; ``seen`` is called when the main thread's loop has come round to it."""

        def on_main() -> None:
            seen()
            if job.task is not None and self._current is job:
                job.task.cancel()

        with self._lock:
            if self._loop is not None and self._current is job:
                self._loop.call_soon_threadsafe(on_main)

    def signal(self, job: MainJob[Any]) -> None:
        """Raise KeyboardInterrupt in ``job`` if it is what the main thread is busy with."""
        with self._lock:
            if self._loop is not None and self._current is job and job.running:
                router.interrupt_main_thread()

    # --- the cell's side ---

    async def serve(
        self,
        until: Awaitable[object] | concurrent.futures.Future[Any],
        *,
        tick: float = 0.1,
        on_tick: Callable[[], object] | None = None,
        on_interrupt: Callable[[], object] | None = None,
        before_job: Callable[[], Awaitable[object]] | None = None,
        hold: bool = False,
    ) -> bool:
        """Do the jobs that come in until ``until`` is done. Call it in the cell's coroutine.

        ``on_tick`` is called every ``tick`` seconds (the loop must wake that often anyway, or ■ is not noticed),
        ``on_interrupt`` when ■ is pressed: here on this loop, or, while synchronous code runs, on the loop of the
        thread that waits for it. ``before_job`` is awaited before each job: the last chance to draw, as synchronous
        code keeps this loop from doing anything else. With ``hold`` later presses of ■ have no effect until
        :meth:`release` is called.

        Returns true when ``until`` is done (look there for its result or exception), false when a second press of ■
        ended the wait early, ``FORCE_SECONDS`` after the first at the soonest. Raises ``AgentError`` when it is already
        serving, and ``CancelledError``, after the work has been told to stop and ``until`` is done, when the coroutine
        was cancelled by anything but ■.
        """
        loop = asyncio.get_running_loop()
        ending = _future_of(until)
        self._before_job = before_job
        with self._open(loop, on_interrupt, hold=hold):
            next_tick = loop.time() + tick
            while not ending.done() and not self._forced:
                self._start_next(loop)
                await self._pause(loop, ending, max(0.0, next_tick - loop.time()))
                if loop.time() >= next_tick:
                    next_tick = loop.time() + tick
                    _call_logged(on_tick)
            await self._end_current()
        if not ending.done() and ending is not until and not isinstance(until, concurrent.futures.Future):
            ending.cancel()
        if self._cancelled:
            raise asyncio.CancelledError
        return ending.done()

    def pressed(self) -> None:
        """■ was pressed while nothing synchronous ran. Called inside the signal handler: only schedules."""
        if self._loop is not None:
            # In the cell's context: the one that the signal cut into knows no cell to print to.
            self._loop.call_soon_threadsafe(self._press, context=self._context)

    def press_in_code(self, caller_loop: asyncio.AbstractEventLoop) -> None:
        """■ was pressed in the agent's code. Called inside the signal handler: only schedules."""
        self._count_press()
        if self._on_interrupt is not None and not caller_loop.is_closed():
            caller_loop.call_soon_threadsafe(_call_logged, self._on_interrupt, context=self._context.copy())

    @property
    def held(self) -> bool:
        """Whether ■ is kept from having an effect, after :meth:`serve` with ``hold``."""
        return self._held

    def release(self) -> None:
        """Give ■ back."""
        if self._held:
            self._held = False
            router.leave(self)

    @contextmanager
    def _open(
        self, loop: asyncio.AbstractEventLoop, on_interrupt: Callable[[], object] | None, *, hold: bool
    ) -> Iterator[None]:
        with self._lock:
            if self._loop is not None:
                raise AgentError(
                    "This session is already running in another cell or task. Wait for it to end, or stop it with "
                    "%agent stop."
                )
            self._loop = loop
        self._on_interrupt = on_interrupt
        self._context = contextvars.copy_context()
        self._presses = 0
        self._cancelled = False
        # ■ before this moment is ipykernel's to handle: it cancels the cell, which is felt at the first wait.
        self._early_until = loop.time() + EARLY_SECONDS
        self.release()  # if a cell that was left by force still holds it
        router.enter(self)
        try:
            yield
        finally:
            with self._lock:
                self._loop = None
                waiting, self._queue = list(self._queue), deque()
            self._held = hold
            if not hold:
                router.leave(self)
            # They know the cell, and with it the conversation, which may be forgotten now.
            self._on_interrupt = self._before_job = None
            self._context = contextvars.Context()
            for job in waiting:
                job.fail(AgentError("The cell ended before this could run in the notebook."))

    async def _pause(self, loop: asyncio.AbstractEventLoop, ending: asyncio.Future[Any], seconds: float) -> None:
        self._waker = loop.create_future()
        try:
            await asyncio.wait({ending, self._waker}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # ipykernel's own handler cancels the cell's task; ours was replaced if that is where this comes from.
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            self._cancelled = self._cancelled or (router.in_charge and loop.time() > self._early_until)
            self._press()
        except KeyboardInterrupt:
            self._press()
        finally:
            self._waker = None

    def _count_press(self) -> None:
        if not self._presses:
            self._first_press = time.monotonic()
        self._presses += 1

    @property
    def _forced(self) -> bool:
        return self._presses > 1 and time.monotonic() > self._first_press + FORCE_SECONDS

    def _press(self) -> None:
        self._count_press()
        job = self._current
        if job is not None and job.task is not None:
            job.note_press()
            job.task.cancel()
        _call_logged(self._on_interrupt)
        self._wake()

    def _wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    def _start_next(self, loop: asyncio.AbstractEventLoop) -> None:
        current = self._current
        if current is not None and current.abandoned:
            current = self._current = None  # it awaits somewhere and would not be cancelled: the thread itself is free
        if current is not None:
            return
        with self._lock:
            if not self._queue:
                return
            job = self._current = self._queue.popleft()
        job.task = loop.create_task(self._perform(job))
        job.task.add_done_callback(lambda task: self._finished(job, task))

    async def _perform(self, job: MainJob[Any]) -> None:
        try:
            try:
                if self._before_job is not None:
                    await self._before_job()
                armed.set(job)
                job.running = True
                value = job.call()
                if inspect.isawaitable(value):
                    value = await value
            finally:
                job.running = False
        except (KeyboardInterrupt, asyncio.CancelledError, SystemExit, GeneratorExit):
            job.fail_interrupted()
        except BaseException as error:
            job.fail(error)
        else:
            job.succeed(value)

    def _finished(self, job: MainJob[Any], task: asyncio.Task[None]) -> None:
        job.fail_interrupted()  # only if it has no result: a task cancelled before its first step never ran
        with self._lock:
            if self._current is job:
                self._current = None
        router.reassert()
        self._wake()

    async def _end_current(self) -> None:
        job = self._current
        if job is None or job.task is None:
            return
        job.task.cancel()
        await asyncio.wait({job.task}, timeout=1.0)
        with self._lock:
            self._current = None


def _future_of(until: Awaitable[object] | concurrent.futures.Future[Any]) -> asyncio.Future[Any]:
    if not isinstance(until, concurrent.futures.Future):
        return asyncio.ensure_future(until)
    ending = asyncio.wrap_future(until)

    def look(done: asyncio.Future[Any]) -> None:
        # The caller looks at the original; asyncio would complain that nobody looked at this copy's exception.
        if not done.cancelled():
            done.exception()

    ending.add_done_callback(look)
    return ending


def _call_logged(callback: Callable[[], object] | None) -> None:
    """Call back into the view; what it raises must not end the cell while the engine still runs."""
    if callback is None:
        return
    try:
        callback()
    except Exception:
        logger.exception("a callback of the agent cell failed")


def run_to_end(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end from synchronous code, on a loop of its own (design.md §2.7).

    Works in a plain script and also inside a running loop (``run_cell_magic`` called from a cell's code), which then
    stands still: widget messages wait until the coroutine is done.
    """
    outer = asyncio._get_running_loop()
    if outer is None:
        return _run(main)
    task = asyncio.current_task(outer)
    asyncio._set_running_loop(None)
    try:
        if task is not None:
            asyncio.tasks._leave_task(outer, task)
        try:
            return _run(main)
        finally:
            if task is not None:
                asyncio.tasks._enter_task(outer, task)
    finally:
        asyncio._set_running_loop(outer)


def _run(main: Coroutine[Any, Any, T]) -> T:
    # Unlike asyncio.run this leaves the thread's current loop alone, which code of the user may have set.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(main)
