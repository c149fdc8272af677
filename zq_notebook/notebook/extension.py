"""``%load_ext zq_notebook`` and ``%unload_ext zq_notebook``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zq_notebook.notebook.await_cell import await_agent_cell
from zq_notebook.notebook.comm_idle import keep_current_request
from zq_notebook.notebook.completion import complete_agent
from zq_notebook.notebook.magics import AgentMagics

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load(shell: InteractiveShell) -> None:
    """Add the magics, the input transformer and the completions; a second load changes nothing."""
    if not isinstance(shell.magics_manager.registry.get("AgentMagics"), AgentMagics):
        shell.register_magics(AgentMagics(shell))
    keep_current_request(shell)
    transformers = shell.input_transformers_post
    if await_agent_cell not in transformers:
        transformers.append(await_agent_cell)
    if shell.Completer is not None and complete_agent not in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.insert(0, complete_agent)


def unload(shell: InteractiveShell) -> None:
    """Take off what :func:`load` added; a running turn is stopped."""
    magics = shell.magics_manager.registry.pop("AgentMagics", None)
    if isinstance(magics, AgentMagics):
        magics.close()
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("agent", None)
    if await_agent_cell in shell.input_transformers_post:
        shell.input_transformers_post.remove(await_agent_cell)
    if shell.Completer is not None and complete_agent in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(complete_agent)
