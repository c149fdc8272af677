"""What has to hold around every cell in which the agent works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from zq_notebook.notebook.comm_idle import idle_after_comms
from zq_notebook.notebook.figures import half_built_figures_kept


@contextmanager
def agent_cell(shell: Any) -> Iterator[None]:
    """Enter it in the cell's coroutine, around ``MainThread.serve``: typed text arrives whole, figures stay open."""
    with half_built_figures_kept(), idle_after_comms(shell):
        yield
