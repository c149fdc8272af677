"""``%%agent`` and ``%agent``."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from traitlets import Enum, Int, List, Unicode
from traitlets.config import Configurable

from zq_notebook.errors import UsageError
from zq_notebook.notebook.cell_line import MODES, flags_help, parse_cell_line

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from zq_notebook.notebook.service import AgentService

UNATTENDED = ("deny", "allow", "error")
F = TypeVar("F", bound=Callable[..., Any])

# IPython's decorators are untyped; these say what they do to a function: nothing that a caller sees.
_as_cell_magic = cast("Callable[[F], F]", cell_magic("agent"))
_as_line_magic = cast("Callable[[F], F]", line_magic("agent"))


def _called_by_coroutine() -> bool:
    """Whether the code that calls the magic can await what it returns: an ``async`` function, or such a cell."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_name != "run_cell_magic":
        frame = frame.f_back
    caller = frame.f_back
    return caller is not None and bool(caller.f_code.co_flags & inspect.CO_COROUTINE)


def _refuse_agents_code() -> None:
    capture = sys.modules.get("zq_notebook.notebook.capture")
    if capture is not None and capture.in_agent_code():
        raise UsageError("The agent's own code cannot start or steer an agent (%agent, %%agent). Do the step directly.")


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


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
    workspace = Unicode(
        "", help="Folder the agent may write to, from %agent new on; when empty the kernel's folder."
    ).tag(config=True)
    lang = Unicode(
        "", help="Language, from %agent new on: en, zh, zh-TW, ja, ko, es; when empty ZQ_LANG, then en."
    ).tag(config=True)
    max_iterations = Int(800, min=1, help="Model requests in one turn at most.").tag(config=True)
    reasoning_effort = Unicode("", help="low, medium or high; when empty OPENAI_REASONING_EFFORT.").tag(config=True)
    allowed_commands = List(Unicode(), help="Command prefixes that run without asking, from %agent new on.").tag(
        config=True
    )
    shell_policy = Unicode("approve", help="approve, sandbox, workspace or all, from %agent new on.").tag(config=True)
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
        return self.model or _variable("ZQ_MODEL") or _variable("OPENAI_MODEL")

    @property
    def default_mode(self) -> str:
        """The mode a new session starts with."""
        return self.mode or _variable("ZQ_MODE") or "interactive"

    @property
    def default_role(self) -> str:
        """The role a new session starts with."""
        return self.role or _variable("ZQ_ROLE") or "analyst"

    @property
    def default_unattended(self) -> str:
        """What happens to an approval when nobody is there."""
        return self.unattended or _variable("ZQ_UNATTENDED") or "deny"

    @property
    def workspace_path(self) -> Path:
        """The folder the agent may write to. Raises UsageError when there is no such folder."""
        try:
            path = Path(self.workspace or os.getcwd()).expanduser().resolve()
        except (OSError, RuntimeError) as error:
            raise UsageError(
                f"The folder that the agent is to work in cannot be found ({error}). Change to a folder that exists "
                "(%cd FOLDER), or name one: %config AgentMagics.workspace = 'FOLDER'."
            ) from None
        if not path.is_dir():
            raise UsageError(
                f"The workspace {path} is not a folder. Create it, or name another one: "
                "%config AgentMagics.workspace = 'FOLDER'."
            )
        return path

    @_as_cell_magic
    def agent_cell(self, line: str, cell: str) -> Awaitable[None] | None:
        _refuse_agents_code()
        arguments = parse_cell_line(line)
        if _called_by_coroutine():
            return self.service.run_cell(arguments, cell)
        from zq_notebook.notebook.main_thread import run_to_end

        return run_to_end(self.service.run_cell(arguments, cell, blocking=True))

    @_as_line_magic
    def agent_line(self, line: str) -> Any:
        from zq_notebook.notebook.commands import run_command

        _refuse_agents_code()
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

Shows or changes the agent's session: status, model, mode, role, tools, new, stop, allow, disallow, autoload, doctor,
help.
%agent help says what each does; %%agent? explains the cell.
"""
