"""Stop while code keeps the main thread busy: the page also asks on the control channel, which has its own thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MESSAGE_TYPE = "zq_stop"


def listen_for_stop(shell: Any, stop: Callable[[], object]) -> None:
    """Have ``stop`` called, on the control thread, when a page asks for it; does nothing outside ipykernel."""
    handlers = getattr(getattr(shell, "kernel", None), "control_handlers", None)
    if handlers is None:
        return

    def handle(stream: Any, ident: Any, parent: Any) -> None:
        stop()

    handlers[MESSAGE_TYPE] = handle
