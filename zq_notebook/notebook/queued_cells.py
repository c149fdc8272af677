"""The cells that wait behind the running one ("Run All")."""

from __future__ import annotations

from typing import Any


def drop_queued_cells(shell: Any) -> None:
    """Have the kernel refuse the cells that are queued now, as it does after an interrupted cell of its own.

    Our cell ends without an error when ■ is pressed, and whoever presses it during "Run All" means all of it. Does
    nothing outside ipykernel, or where a version has another way to do it.
    """
    abort = getattr(getattr(shell, "kernel", None), "_abort_queues", None)
    if abort is not None:
        abort()
