"""Idle for widget messages that are handled while a cell awaits (design.md §2.5).

ipykernel 7.4.0 handles comm messages beside an awaited cell but publishes no idle status for them. The front end's
ipywidgets wait for it before they send the next change of a field, so only the first character typed would arrive.
"""

from __future__ import annotations

import contextvars
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Statuses published for the message that is being handled, to see whether ipykernel does it by itself.
_published: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("zq_comm_statuses", default=None)


@contextmanager
def idle_after_comms(shell: Any) -> Iterator[None]:
    """For as long as a cell awaits, follow each widget message with an idle status of its own.

    Does nothing where there is no ipykernel, where the version handles no messages beside a cell, or where it
    publishes the status itself. May be nested: the inner one then does nothing.
    """
    keep_current_request(shell)
    kernel = getattr(shell, "kernel", None)
    if kernel is None or not _needs_help(kernel):
        yield
        return
    handle, publish = kernel.dispatch_shell, kernel._publish_status
    cell = kernel.get_parent("shell")

    def publish_status(status: str, *args: Any, **kwargs: Any) -> Any:
        seen = _published.get()
        if seen is not None:
            seen.append(status)
        return publish(status, *args, **kwargs)

    async def dispatch_shell(*args: Any, **kwargs: Any) -> None:
        if not kwargs.get("concurrent"):
            await handle(*args, **kwargs)
            return
        seen: list[str] = []
        token = _published.set(seen)
        try:
            await handle(*args, **kwargs)
        finally:
            _published.reset(token)
            if "idle" not in seen:
                # ipykernel has made the message the parent of this task's context.
                publish("idle", "shell")
                publish("busy", "shell", parent=cell)  # the cell goes on; front ends show the last status they saw

    kernel.dispatch_shell, kernel._publish_status = dispatch_shell, publish_status
    try:
        yield
    finally:
        for name, ours in (("dispatch_shell", dispatch_shell), ("_publish_status", publish_status)):
            if vars(kernel).get(name) is ours:
                delattr(kernel, name)


def keep_current_request(shell: Any) -> None:
    """Keep a request that has ended from becoming the kernel's current one again; done once per kernel.

    After a widget message that it handled beside a cell, ipykernel 7.4 (``Kernel.shell_main``) restores the request
    that was current when the message came. Has the next cell begun meanwhile ("Run All"), that one loses its place:
    its idle status goes to the ended request, and its prompt stays ``[*]`` for ever. The message was handled in a
    context of its own, so there is nothing to restore.
    """
    kernel = getattr(shell, "kernel", None)
    if kernel is None or not hasattr(kernel, "set_parent") or "set_parent" in vars(kernel) or not _needs_help(kernel):
        return
    original = kernel.set_parent

    def set_parent(ident: Any, parent: Any, channel: str = "shell") -> None:
        if channel == "shell" and sys._getframe(1).f_code.co_name == "shell_main":
            kernel._shell_context = contextvars.copy_context()  # threads of the user's find the current cell there
            return
        original(ident, parent, channel)

    kernel.set_parent = set_parent


def _needs_help(kernel: Any) -> bool:
    """Whether this ipykernel has the concurrent path, and nobody stands in front of it yet."""
    handle = getattr(kernel, "dispatch_shell", None)
    if handle is None or not hasattr(kernel, "_publish_status") or "dispatch_shell" in vars(kernel):
        return False
    return "concurrent" in inspect.signature(handle).parameters
