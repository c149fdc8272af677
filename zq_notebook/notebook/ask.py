"""``await zq_notebook.ask("…")``: the same as a ``%%agent`` cell, from code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from zq_notebook.errors import UsageError
from zq_notebook.notebook.capture import in_agent_code
from zq_notebook.notebook.cell_line import MODES, CellArguments, one_of
from zq_notebook.notebook.result import TurnResult

if TYPE_CHECKING:
    from zq_notebook.notebook.service import AgentService


async def ask(
    prompt: str,
    *,
    model: str | None = None,
    role: str | None = None,
    mode: str | None = None,
    session: str | None = None,
    new: bool = False,
    attach: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    max_iterations: int | None = None,
) -> TurnResult:
    """Give the agent of this notebook a task and wait for the outcome.

    Args:
        prompt: the task.
        model, role, mode: for this turn, as the flags of ``%%agent``.
        session: name of the conversation; the notebook's current one by default.
        new: start the conversation afresh.
        attach: the file to attach, or several.
        max_iterations: model requests in this turn at most.

    Returns:
        The :class:`TurnResult`.

    Raises:
        UsageError: an argument cannot be carried out, or this is no notebook with the extension loaded.
        TurnError: the turn ended with an error; its ``result`` holds what there is.
    """
    if in_agent_code():
        raise UsageError("The agent's own code cannot ask the agent. Run zq_notebook.ask(…) in a cell of yours.")
    if not isinstance(prompt, str):
        raise UsageError(f"The task for the agent is text, and got {type(prompt).__name__}.")
    if max_iterations is not None and not (isinstance(max_iterations, int) and max_iterations >= 1):
        raise UsageError(f"max_iterations is a whole number of at least 1, not {max_iterations!r}.")
    files = [attach] if isinstance(attach, (str, os.PathLike)) else attach
    arguments = CellArguments(
        model=model,
        role=role,
        mode=one_of("mode", mode, MODES) if mode is not None else None,
        session=session,
        new=new,
        attach=[os.fspath(file) for file in files],
        max_iterations=max_iterations,
    )
    return await _service().ask(arguments, prompt)


def _service() -> AgentService:
    from IPython.core.getipython import get_ipython

    from zq_notebook.notebook.magics import AgentMagics

    shell = get_ipython()
    magics = shell.magics_manager.registry.get("AgentMagics") if shell is not None else None
    if not isinstance(magics, AgentMagics):
        raise UsageError(
            "zq_notebook is not loaded here. In a notebook, run %load_ext zq_notebook first; in a program of your own, "
            "use create_default_engine(…) and engine.run(…)."
        )
    return magics.service
