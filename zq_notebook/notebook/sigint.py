"""The ■ button: one SIGINT handler for as long as an agent cell waits.

ipykernel 7.4 answers SIGINT during an awaited cell by cancelling the cell (``IPythonKernel._cancel_on_sigint``), which
would end it with a traceback, and would let synchronous code of the agent run to its end first. So, while a cell waits
for the agent, this handler is in place instead. It looks at the context variable of whatever the signal interrupted:

- code that runs for the agent gets ``KeyboardInterrupt`` where it is;
- a task that such code started gets ``CancelledError`` (a ``KeyboardInterrupt`` in a task other than the cell's would
  leave the event loop and end the kernel);
- everything else is left alone, and those who wait are told that the button was pressed.
"""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol


class Interruptible(Protocol):
    """Work on the main thread that a signal may interrupt."""

    @property
    def running(self) -> bool: ...
    @property
    def task(self) -> asyncio.Task[None] | None: ...
    def pressed_in_code(self) -> None: ...


class PressListener(Protocol):
    """Someone who waits, and wants to know that ■ was pressed. Called inside the signal handler: must only schedule."""

    def pressed(self) -> None: ...


#: The work in whose context the current code runs; tasks and callbacks that it starts inherit it.
armed: contextvars.ContextVar[Interruptible | None] = contextvars.ContextVar("zq_main_thread_job", default=None)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Keep a signal from cutting through a piece of our own bookkeeping inside a job; keep such pieces short."""
    token = armed.set(None)
    try:
        yield
    finally:
        armed.reset(token)


class SigintRouter:
    """Installs the handler when the first listener comes and puts the old one back when the last one leaves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[PressListener] = []
        self._previous: Any = None
        self._installed = False
        self._own_signals = 0

    def enter(self, listener: PressListener) -> None:
        """Start to tell ``listener``. Off the main thread there are no signals, and this only keeps the list."""
        with self._lock:
            self._listeners.append(listener)
        if len(self._listeners) == 1:
            self._install()

    def leave(self, listener: PressListener) -> None:
        """Stop to tell ``listener``."""
        with self._lock:
            self._listeners.remove(listener)
        if not self._listeners and self._installed:
            if signal.getsignal(signal.SIGINT) == self._handle:
                signal.signal(signal.SIGINT, self._previous)
            self._installed = False
            self._own_signals = 0

    @property
    def in_charge(self) -> bool:
        """Whether SIGINT really comes here: nobody replaced the handler in the meantime."""
        return self._installed and signal.getsignal(signal.SIGINT) == self._handle

    def reassert(self) -> None:
        """Take SIGINT back from code that replaced the handler and did not put it back."""
        if self._installed and not self.in_charge:
            signal.signal(signal.SIGINT, self._handle)

    def interrupt_main_thread(self) -> None:
        """Raise SIGINT in the main thread on our own account (time limit, Stop), from any thread."""
        if not self._installed:
            return
        self._own_signals += 1
        if hasattr(signal, "pthread_kill"):
            # Not os.kill: that may be delivered to another thread and would leave a sleeping main thread asleep.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        else:
            import _thread

            _thread.interrupt_main(signal.SIGINT)

    def _install(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self._own_signals = 0
        previous = signal.signal(signal.SIGINT, self._handle)
        self._previous = signal.SIG_DFL if previous is None else previous
        self._installed = True

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        own = self._own_signals > 0
        if own:
            self._own_signals -= 1
        job = armed.get()
        if job is not None and job.running:
            if not own:
                job.pressed_in_code()
            self._raise_in(job)
        elif not own:
            for listener in list(self._listeners):
                listener.pressed()

    @staticmethod
    def _raise_in(job: Interruptible) -> None:
        try:
            current = asyncio.current_task()
        except RuntimeError:
            current = None
        if current is None or current is job.task:
            raise KeyboardInterrupt
        raise asyncio.CancelledError


router = SigintRouter()
