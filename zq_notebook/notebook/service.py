"""The agent of one kernel: its sessions, its roles, and the way from a cell to a turn and back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from zq_notebook.agents.registry import AgentRegistry
from zq_notebook.engine.approval import ApprovalOutcome, ApprovalReply, PermissionRequest
from zq_notebook.errors import UsageError
from zq_notebook.languages.catalog import resolve_lang
from zq_notebook.notebook.agent_cell import agent_cell
from zq_notebook.notebook.answering import LiveCards, TypedAnswers
from zq_notebook.notebook.approvals import POLICIES, ApprovalLadder
from zq_notebook.notebook.attach import read_attachments
from zq_notebook.notebook.cell_line import MODES, CellArguments, one_of
from zq_notebook.notebook.control_stop import listen_for_stop
from zq_notebook.notebook.kernel_tools import register_kernel_tools
from zq_notebook.notebook.last_press import let_go
from zq_notebook.notebook.main_thread import MainThread
from zq_notebook.notebook.namespace import NamespaceChanges, NamespaceWatch
from zq_notebook.notebook.queued_cells import drop_queued_cells
from zq_notebook.notebook.result import TurnError, TurnResult
from zq_notebook.notebook.session import DEFAULT_SESSION, Session
from zq_notebook.notebook.settings import Choices, Settings
from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.turn_cell import TurnCell
from zq_notebook.notebook.view.approval import ApprovalCard, approval_card
from zq_notebook.notebook.view.base import Footer, TurnView
from zq_notebook.notebook.view.choice import choose_view
from zq_notebook.notebook.view.live import LiveView
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
        listen_for_stop(shell, self.stop)

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
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions[name] = Session(name, self._look_up, self.roles, self._add_kernel_tools)
            chosen = self._sessions.get(self._current_name)
            if chosen is not None:
                # The mode stays behind: what was allowed in one conversation is not allowed in another.
                session.choices.model, session.choices.role = chosen.choices.model, chosen.choices.role
        return session

    def session_names(self) -> list[str]:
        """The names in use."""
        return sorted(self._sessions)

    def start_new(self, name: str | None) -> Session:
        """Start the conversation of this name (by default the current one) afresh, and make it the current one."""
        if self.running:
            raise UsageError("A turn is running. Stop it with its Stop button or with ■, or wait for its end.")
        session = self.session(name or self._current_name)
        session.reset()
        self._current_name = session.name
        return session

    def _look_up(self, choices: Choices, begun: Settings | None) -> Settings:
        d = self._defaults
        return Settings(
            model=choices.model or d.default_model,
            role=choices.role or _configured("role", d.default_role, self.roles.names()),
            mode=choices.mode or _configured("mode", d.default_mode, MODES),
            workspace=begun.workspace if begun else d.workspace_path,
            lang=begun.lang if begun else resolve_lang(d.lang or None),
            max_iterations=d.max_iterations,
            reasoning_effort=d.reasoning_effort or None,
            allowed_commands=begun.allowed_commands if begun else tuple(d.allowed_commands),
            shell_policy=begun.shell_policy if begun else d.shell_policy,
            log_dir=d.log_dir or None,
        )

    def _add_kernel_tools(self, registry: ToolRegistry) -> None:
        register_kernel_tools(registry, self.shell, self.main)

    # Turns

    async def run_cell(self, arguments: CellArguments, cell: str, *, blocking: bool = False) -> None:
        """What ``%%agent`` awaits; nothing is returned, so that the cell shows nothing but the view."""
        try:
            await self.run_turn(arguments, cell, blocking=blocking)
        finally:
            let_go(self.main, self.shell, at_reply=not blocking)

    async def ask(self, arguments: CellArguments, text: str) -> TurnResult:
        """:meth:`run_turn` from code that goes on afterwards."""
        try:
            return await self.run_turn(arguments, text)
        finally:
            let_go(self.main, self.shell, at_reply=False)

    async def run_turn(self, arguments: CellArguments, text: str, *, blocking: bool = False) -> TurnResult:
        """One turn of the chosen session, shown in the current cell. Afterwards ■ has to be let go.

        ``blocking`` says that the kernel handles nothing else meanwhile, no click either.

        Raises:
            UsageError: an argument cannot be carried out.
            TurnError: the turn ended with an error.
        """
        text = text.strip()
        if not text:
            raise UsageError("The cell has no task for the agent. Write what you want below the %%agent line.")
        if self._running is not None:
            raise UsageError(
                "Another turn is running in this kernel. Wait for its end, or stop it with its Stop button or with ■."
            )
        session = self.session(arguments.session or self._current_name)
        choice = session.choose(arguments)
        policy = _configured("unattended policy", self._defaults.default_unattended, POLICIES)
        attached = read_attachments(arguments.attach, session.folder(new=arguments.new))
        if arguments.new:
            session.reset()
        with session.prepared(choice) as engine, agent_cell(self.shell):
            self._current_name = session.name
            watch = NamespaceWatch(self.shell)
            transcript = Transcript(choice.role, choice.model, choice.mode)
            attended = is_attended(self.shell)
            view = choose_view(self.shell, transcript, attended and not blocking, self.stop)
            cell = TurnCell(engine, view, self.main, lambda usage: cost(choice.model, usage))
            self._arrange_answers(session, cell, view, attended, policy)
            self._running = cell
            try:
                view.open()
                await cell.play(text + attached.text, attached.attachments, attached.refs)
            finally:
                self._running = None
                footer = _footer(cell, watch.changes(), session.settings.workspace)
                session.add_up(cell.result.usage, cell.result.cost)
                if arguments.output:
                    self.shell.user_ns[arguments.output] = cell.result
                view.close(footer)
        if cell.kernel_interrupted:
            drop_queued_cells(self.shell)
        result = cell.result
        if result.status == "error":
            raise TurnError(result.error or "The turn ended with an error.", cell.error_type or "AgentError", result)
        return result

    def _arrange_answers(self, session: Session, cell: TurnCell, view: TurnView, attended: bool, policy: str) -> None:
        """Set up who answers approvals and questions during this turn."""
        permissions, workspace = session.permissions, session.settings.workspace

        def make_card(request: PermissionRequest) -> ApprovalCard:
            can_always = permissions.can_always_allow_command(request.tool_name, request.arguments)
            return approval_card(request, workspace=workspace, can_always_command=can_always)

        def record(request: PermissionRequest, reply: ApprovalReply | None) -> None:
            withdrawn = ApprovalReply(ApprovalOutcome.DENY, reason="the turn was stopped")
            view.approval_closed(request.tool_call_id or request.tool_name, reply or withdrawn)

        typed = TypedAnswers(view, self.main, make_card) if attended else None
        session.engine.set_question_handler(typed.question if typed is not None else None)
        session.engine.set_plan_handler(typed.plan if typed is not None else None)
        session.engine.set_approver(
            ApprovalLadder(
                on_main=cell.on_main,
                card_view=LiveCards(view, make_card) if isinstance(view, LiveView) else None,
                prompt=typed.approve if typed is not None else None,
                policy=policy,
                record=record,
            )
        )

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
        self.current.choose_mode(mode)

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
            return f"{name} runs without asking in this session. %agent disallow takes that back."
        command = " ".join(words[1:])
        if name != "run_shell" or not permissions.allow_prefix_for_session(command):
            raise UsageError(
                f"{command!r} cannot be allowed for {name}. Only run_shell takes a command, and only a plain one that "
                "does not run whatever it is given; otherwise allow the whole tool."
            )
        return f"run_shell runs what begins with {command!r} without asking. %agent disallow takes that back."

    def disallow(self, words: list[str]) -> str:
        """Take back what :meth:`allow` or an *Always* button allowed; returns what to print."""
        name = " ".join(words[1:] if words[0] == "run_shell" and len(words) > 1 else words)
        if not self.current.permissions.disallow_for_session(name):
            allowed = ", ".join(self.allowances()) or "nothing"
            raise UsageError(f"{name!r} was not allowed, so there is nothing to take back. Allowed: {allowed}.")
        return f"{name} is asked for again."


def _configured(kind: str, value: str, known: Sequence[str]) -> str:
    """A value from the configuration. Raises UsageError that says where to look for it."""
    try:
        return one_of(kind, value, known)
    except UsageError as error:
        word = "unattended" if kind.startswith("unattended") else kind
        hint = f", or choose one here: %agent {kind} NAME" if kind in ("mode", "role") else ""
        raise UsageError(f"{error} Correct ZQ_{word.upper()} or %config AgentMagics.{word}{hint}.") from None


def _footer(cell: TurnCell, changes: NamespaceChanges, workspace: Path) -> Footer:
    result = cell.result
    return Footer(
        status=result.status,
        files=[_inside(workspace, file) for file in result.produced_files],
        variables_new=changes.new,
        variables_changed=changes.changed,
        variables_deleted=changes.deleted,
        tokens=result.usage.total_tokens or None,
        cost=result.cost,
        elapsed=cell.elapsed,
        iterations=result.iterations,
    )


def _inside(workspace: Path, file: str) -> str:
    """``file`` as seen from the workspace, where it lies in it: short, and the same on every machine."""
    path = Path(file)
    return path.relative_to(workspace).as_posix() if path.is_relative_to(workspace) else file


def is_attended(shell: InteractiveShell) -> bool:
    """Whether somebody can be asked: the front end takes input, or a terminal is there."""
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return sys.stdin is not None and sys.stdin.isatty()
    return bool(getattr(kernel, "_allow_stdin", False))
