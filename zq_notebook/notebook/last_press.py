"""■ pressed once more while its cell is ending.

A turn that ■ has stopped ends within milliseconds, and a second press (people press twice) would meet ipykernel between
the cell's last line and its reply. There it becomes a KeyboardInterrupt or a cancellation in the kernel's own code: no
reply is sent, and the cell stays ``[*]`` for ever. So presses are swallowed until the turn's cell is out of the way.
"""

from __future__ import annotations

import signal
import threading
from typing import Any

from zq_notebook.notebook.main_thread import MainThread


def let_go(main: MainThread, shell: Any, *, at_reply: bool) -> None:
    """Give ■ back to whoever had it before ``main`` served with ``hold``; nothing where it did not.

    ``at_reply``: the turn is the last thing in its cell, so this can wait until the kernel makes the reply. Then
    ipykernel has put Python's handler in place, and takes it away again when the reply is sent (``post_handler_hook``).
    """
    if not main.held:
        return
    kernel: Any = getattr(shell, "kernel", None)
    on_main_thread = threading.current_thread() is threading.main_thread()
    if not (at_reply and on_main_thread and _restores_input(kernel)):
        main.release()
        return
    restore_input = kernel._restore_input

    def restore_input_and_let_go() -> None:
        del kernel._restore_input
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        main.release()
        restore_input()

    kernel._restore_input = restore_input_and_let_go


def _restores_input(kernel: Any) -> bool:
    """Whether this is an ipykernel whose ``do_execute`` ends as described above."""
    needed = ("_restore_input", "_cancel_on_sigint", "post_handler_hook", "saved_sigint_handler")
    return all(hasattr(kernel, name) for name in needed) and "_restore_input" not in vars(kernel)
