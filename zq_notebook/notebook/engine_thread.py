"""The thread on which all engines of this process run, with an event loop of its own (design: §2.2)."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
from collections.abc import Coroutine
from typing import TypeVar

from zq_notebook.errors import AgentError
from zq_notebook.text import logs

logger = logs.logger("zq_notebook.notebook")
T = TypeVar("T")


class EngineThread:
    """Started when it is first needed; a daemon, so that it never keeps a kernel from ending."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop, started now if need be."""
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=self._run, args=(loop,), name="zq_notebook engine", daemon=True)
                thread.start()
                self._loop = loop
            return self._loop

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        while True:
            try:
                loop.run_forever()
            except (KeyboardInterrupt, SystemExit):
                # asyncio lets these two out of the loop. The task that raised one has ended with it; the others, and
                # every later turn, still need the loop.
                logger.debug("something on the engine's thread tried to end it", exc_info=True)

    def submit(self, coroutine: Coroutine[object, object, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine there, in a copy of the caller's context, so that what it prints keeps its cell."""
        loop = self.loop()
        context = contextvars.copy_context()
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        def start() -> None:
            task = loop.create_task(coroutine, context=context)
            future.add_done_callback(lambda done: loop.call_soon_threadsafe(task.cancel) if done.cancelled() else None)
            task.add_done_callback(lambda task: _pass_on(task, future))

        loop.call_soon_threadsafe(start)
        return future


def _pass_on(task: asyncio.Task[T], future: concurrent.futures.Future[T]) -> None:
    if future.cancelled() or not future.set_running_or_notify_cancel():
        if not task.cancelled():
            task.exception()
        return
    if task.cancelled():
        future.set_exception(concurrent.futures.CancelledError())
        return
    error = task.exception()
    if error is None:
        future.set_result(task.result())
    elif isinstance(error, Exception):
        future.set_exception(error)
    else:
        # In the cell it would end the kernel, or look as if the user had pressed ■.
        refused = AgentError(
            f"The model's provider, a hook or a tool raised {type(error).__name__}, which is meant to end the whole "
            "program, so the turn was ended instead. Have it raise an ordinary exception."
        )
        refused.__cause__ = error
        future.set_exception(refused)


ENGINE_THREAD = EngineThread()
