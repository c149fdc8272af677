"""The agent of one kernel: its sessions, its roles, and the way from a cell to a turn and back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from zq_notebook.agents.prompts import resolve_lang
from zq_notebook.agents.registry import AgentRegistry
from zq_notebook.engine.messages import TokenUsage
from zq_notebook.errors import UsageError
from zq_notebook.notebook.attach import read_attachments
from zq_notebook.notebook.cell_line import CellArguments, one_of
from zq_notebook.notebook.comm_idle import idle_after_comm_messages
from zq_notebook.notebook.kernel_tools import register_kernel_tools
from zq_notebook.notebook.main_thread import MainThread
from zq_notebook.notebook.namespace import NamespaceWatch
from zq_notebook.notebook.result import TurnError, TurnResult
from zq_notebook.notebook.session import DEFAULT_SESSION, Session, TurnChoice
from zq_notebook.notebook.settings import Settings
from zq_notebook.notebook.turn_cell import TurnCell
from zq_notebook.notebook.view.choice import open_view
from zq_notebook.notebook.words import mode_words
from zq_notebook.providers.capabilities import cost
from zq_notebook.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from zq_notebook.notebook.magics import AgentMagics


class AgentService:
    """Made with the first ``%%agent`` or ``%agent`` of a kernel."""

    def __init__(self, shell: InteractiveShell, defaults: AgentMagics) -> None:
        self.shell = shell
        self.roles = AgentRegistry()
        self.main = MainThread()
        self._defaults = defaults
        self._sessions: dict[str, Session] = {}
        self._current_name = DEFAULT_SESSION
        self._running: TurnCell | None = None

    # Sessions

    @property
    def current(self) -> Session:
        """The session that the next ``%%agent`` cell continues."""
        return self.session(self._current_name)

    @property
    def running(self) -> bool:
        """Whether a turn is running."""
        return self._running is not None

    def session(self, name: str) -> Session:
        """The session of this name, made if need be."""
        if name not in self._sessions:
            self._sessions[name] = Session(name, self._settings(), self.roles, self._add_kernel_tools)
        return self._sessions[name]

    def session_names(self) -> list[str]:
        """The names in use."""
        return sorted(self._sessions)

    def start_new(self, name: str | None) -> Session:
        """Start the conversation of this name (by default the current one) afresh, and make it the current one."""
        if self.running:
            raise UsageError("A turn is running. Stop it with %agent stop, or wait for its end.")
        self._current_name = name or self._current_name
        session = self.current
        session.reset()
        return session

    def _settings(self) -> Settings:
        d = self._defaults
        return Settings(
            model=d.default_model,
            role=d.default_role,
            mode=one_of("mode", d.default_mode, ("discuss", "plan", "interactive", "auto")),
            workspace=d.workspace_path.resolve(),
            lang=resolve_lang(d.lang or None),
            max_iterations=d.max_iterations,
            reasoning_effort=d.reasoning_effort or None,
            allowed_commands=tuple(d.allowed_commands),
            shell_policy=d.shell_policy,
            unattended=one_of("unattended policy", d.default_unattended, ("deny", "allow", "error")),
            log_dir=d.log_dir or None,
        )

    def _add_kernel_tools(self, registry: ToolRegistry) -> None:
        register_kernel_tools(registry, self.shell, self.main)

    # Turns

    async def run_cell(self, arguments: CellArguments, cell: str) -> None:
        """What ``%%agent`` awaits; nothing is returned, so that the cell shows nothing but the view."""
        await self.run_turn(arguments, cell)

    async def run_turn(self, arguments: CellArguments, text: str) -> TurnResult:
        """One turn of the chosen session, shown in the current cell.

        Raises:
            UsageError: an argument cannot be carried out.
            TurnError: the turn ended with an error.
        """
        text = text.strip()
        if not text:
            raise UsageError("The cell has no task for the agent. Write what you want below the %%agent line.")
        if self._running is not None:
            raise UsageError("Another turn is running in this kernel. Wait for its end, or stop it with %agent stop.")
        if arguments.session:
            self._current_name = arguments.session
        session = self.current
        choice = session.choose(arguments)
        attached = read_attachments(arguments.attach, session.settings.workspace)
        if arguments.new:
            session.reset()
        with session.prepared(choice) as engine, idle_after_comm_messages(self.shell):
            watch = NamespaceWatch(self.shell)
            view = open_view(self.shell, session, choice)
            cell = TurnCell(engine, view, self.main, lambda usage: _price(choice, usage))
            view.connect(cell, engine, self.main)
            self._running = cell
            try:
                await view.show()
                await cell.play(text + attached.text, attached.attachments, attached.refs)
            finally:
                self._running = None
                view.finish(cell, watch.changes())
        result = cell.result
        session.add_up(result.usage, result.cost)
        if arguments.output:
            self.shell.user_ns[arguments.output] = result
        if result.status == "error":
            raise TurnError(result.error or "The turn ended with an error.", cell.error_type or "AgentError", result)
        return result

    def stop(self) -> bool:
        """Stop the running turn; false when there is none."""
        cell = self._running
        if cell is None:
            return False
        cell.stop()
        return True

    # What %agent shows and changes

    def mode_words(self, mode: str) -> str:
        """The mode in words."""
        return mode_words(mode)

    def set_mode(self, mode: str) -> None:
        """Change the current session's mode, for a running turn too."""
        self.current.settings.mode = mode
        self.current.permissions.mode = mode

    def tools(self) -> list[tuple[str, str, str]]:
        """Name, whether it is asked for, and what it does, of each tool."""
        engine, permissions = self.current.engine, self.current.permissions
        rows = []
        for schema in engine.registry.schemas():
            function = schema["function"]
            tool = engine.registry.get(function["name"])
            decision = permissions.evaluate(function["name"], {}, tool.metadata if tool is not None else None)
            word = "asks" if decision.needs_user else "runs" if decision.allowed else "not now"
            rows.append((function["name"], word, function.get("description", "").split("\n")[0][:90]))
        return rows

    def allowances(self) -> list[str]:
        """What runs without asking in the current session beyond what only reads."""
        permissions = self.current.permissions
        programs = [f"run_shell {program}" for program in sorted(permissions.allow_commands)]
        return [*sorted(permissions.allow_tools), *programs, *permissions.allowed_commands]

    def allow(self, words: list[str]) -> str:
        """Allow a tool, or a program in run_shell, for the current session; returns what to print."""
        permissions = self.current.permissions
        names = [name for name, _, _ in self.tools()]
        name = one_of("tool", words[0], names)
        if len(words) == 1:
            permissions.allow_tool_for_session(name)
            return f"{name} runs without asking in this session. %agent new takes that back."
        command = " ".join(words[1:])
        if name != "run_shell" or not permissions.can_always_allow_command(name, {"command": command}):
            raise UsageError(
                f"{command!r} cannot be allowed for {name}. Only run_shell takes a program, and only one that does not "
                "run whatever it is given; otherwise allow the whole tool."
            )
        permissions.allow_command_for_session(command)
        return f"run_shell runs {words[1]} without asking in this session. %agent new takes that back."


def _price(choice: TurnChoice, usage: TokenUsage) -> float | None:
    return cost(choice.model, usage)


def is_attended(shell: InteractiveShell) -> bool:
    """Whether somebody can be asked: the front end takes input, or a terminal is there."""
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return sys.stdin is not None and sys.stdin.isatty()
    return bool(kernel._allow_stdin)
