"""The threads on which synchronous tools run, so that the engine's loop never waits for one."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_MAX_THREADS = 64
_IDLE_SECONDS = 30.0


class Outcome(Generic[T]):
    """What a function did: a value or the exception, kept apart so that no exception has to cross a future.

    ``StopIteration`` cannot be set on an asyncio future, and ``KeyboardInterrupt`` would end the loop.
    """

    __slots__ = ("_error", "_value")

    def __init__(self, value: T | None, error: BaseException | None) -> None:
        self._value = value
        self._error = error

    @property
    def error(self) -> BaseException | None:
        """What the function raised, or ``None``."""
        return self._error

    def value(self) -> T:
        """What the function returned. Raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


class _Pool:
    """Daemon threads made on demand: unlike ``ThreadPoolExecutor``'s they never keep the interpreter from ending."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0  # threads that wait for a job and have not been promised one
        self._threads = 0
        self._backlog = 0  # jobs that wait for a thread because there are as many as there may be

    def submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
            elif self._threads < _MAX_THREADS:
                self._threads += 1
                threading.Thread(target=self._work, name="zq-tool", daemon=True).start()
            else:
                self._backlog += 1
            self._jobs.put(job)

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._jobs.empty():
                        self._threads -= 1
                        self._idle -= 1
                        return
                continue
            job()
            del job
            with self._lock:
                if self._backlog:
                    self._backlog -= 1
                else:
                    self._idle += 1


_pool = _Pool()


async def run_in_thread(func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Outcome[T]:
    """Run ``func`` on a thread of the pool, in a copy of the caller's context.

    When the caller is cancelled the thread goes on: a tool that can take long looks at ``ctx.cancel``.
    """
    context = contextvars.copy_context()
    future: Future[Outcome[T]] = Future()

    def job() -> None:
        if not future.set_running_or_notify_cancel():
            return
        outcome: Outcome[Any]
        try:
            outcome = Outcome(context.run(func, *args, **kwargs), None)
        except BaseException as error:
            outcome = Outcome(None, error)
        future.set_result(outcome)

    _pool.submit(job)
    return await asyncio.wrap_future(future)
