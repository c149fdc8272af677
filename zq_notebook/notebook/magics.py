"""``%%agent`` and ``%agent``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from traitlets import Enum, Int, List, Unicode
from traitlets.config import Configurable

from zq_notebook.notebook.cell_line import MODES, flags_help, parse_cell_line

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from zq_notebook.notebook.result import TurnResult
    from zq_notebook.notebook.service import AgentService

UNATTENDED = ("deny", "allow", "error")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

# IPython's decorators are untyped; these say what they do to a function: nothing that a caller sees.
_as_cell_magic = cast("Callable[[F], F]", cell_magic("agent"))
_as_line_magic = cast("Callable[[F], F]", line_magic("agent"))


def run_or_await(coroutine: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T] | T:
    """The coroutine itself where a loop is running, to be awaited; otherwise run to its end, and its result."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    return coroutine


@magics_class
class AgentMagics(Magics, Configurable):
    """The magics and their defaults. Configure with ``c.AgentMagics.NAME = …`` or ``%config AgentMagics.NAME = …``."""

    model = Unicode("", help="Model; when empty ZQ_MODEL, then OPENAI_MODEL. 'demo' is a scripted one.").tag(
        config=True
    )
    role = Unicode("", help="Role: code, cowork or analyst; when empty ZQ_ROLE, then analyst.").tag(config=True)
    mode = Enum(
        ("", *MODES), default_value="", help="Mode; when empty ZQ_MODE, then interactive (asks before acting)."
    ).tag(config=True)
    workspace = Unicode("", help="Folder the agent may write to; when empty the kernel's folder.").tag(config=True)
    lang = Unicode("", help="Language: en, zh, zh-TW, ja, ko, es; when empty ZQ_LANG, then en.").tag(config=True)
    max_iterations = Int(800, min=1, help="Model requests in one turn at most.").tag(config=True)
    reasoning_effort = Unicode("", help="low, medium or high; when empty OPENAI_REASONING_EFFORT.").tag(config=True)
    allowed_commands = List(Unicode(), help="Command prefixes that run without asking.").tag(config=True)
    shell_policy = Unicode("approve", help="approve, sandbox, workspace or all.").tag(config=True)
    unattended = Enum(
        ("", *UNATTENDED),
        default_value="",
        help="Answer to an approval when nobody is there: deny, allow or error; when empty ZQ_UNATTENDED, then deny.",
    ).tag(config=True)
    log_dir = Unicode("", help="Folder for logs of model requests; when empty nothing is logged.").tag(config=True)

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._service: AgentService | None = None

    @property
    def service(self) -> AgentService:
        """The sessions of this kernel, made when first needed."""
        if self._service is None:
            from zq_notebook.notebook.service import AgentService

            assert self.shell is not None
            self._service = AgentService(self.shell, self)
        return self._service

    def close(self) -> None:
        """Stop a running turn."""
        if self._service is not None:
            self._service.stop()

    @property
    def default_model(self) -> str:
        """The model a new session starts with."""
        return self.model or os.environ.get("ZQ_MODEL", "") or os.environ.get("OPENAI_MODEL", "")

    @property
    def default_mode(self) -> str:
        """The mode a new session starts with."""
        return self.mode or os.environ.get("ZQ_MODE", "") or "interactive"

    @property
    def default_role(self) -> str:
        """The role a new session starts with."""
        return self.role or os.environ.get("ZQ_ROLE", "") or "analyst"

    @property
    def default_unattended(self) -> str:
        """What happens to an approval when nobody is there."""
        return self.unattended or os.environ.get("ZQ_UNATTENDED", "") or "deny"

    @property
    def workspace_path(self) -> Path:
        """The folder the agent may write to."""
        return Path(self.workspace).expanduser() if self.workspace else Path.cwd()

    @_as_cell_magic
    def agent_cell(self, line: str, cell: str) -> Awaitable[TurnResult | None] | None:
        arguments = parse_cell_line(line)
        return run_or_await(self.service.run_cell(arguments, cell))

    @_as_line_magic
    def agent_line(self, line: str) -> Any:
        from zq_notebook.notebook.commands import run_command

        return run_command(self.service, line)


CELL_HELP = f"""%%agent [flags]
the task, in your own words

Gives the task to the agent that lives in this kernel. Its answer streams into the cell's output; it can look at your
variables, run code, and read and change files. Before anything with consequences it asks, in the cell. The next
%%agent cell continues the conversation.

Flags (model, role, mode and the limit hold for this cell only):
{flags_help()}

%agent help lists the commands that change or show the session.

Example:

    %%agent -r analyst -a notes.txt
    Which regions in the table `sales` fell last quarter, and why?
"""
AgentMagics.agent_cell.__doc__ = CELL_HELP
AgentMagics.agent_line.__doc__ = """%agent COMMAND

Shows or changes the agent's session: status, model, mode, role, tools, new, stop, allow, doctor, help.
%agent help says what each does; %%agent? explains the cell.
"""
