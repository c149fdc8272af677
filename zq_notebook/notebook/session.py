"""A conversation in a notebook: one engine, and what the user chose for it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from zq_notebook.agents.registry import AgentRegistry
from zq_notebook.assembly import create_default_engine, provider_for, registration
from zq_notebook.engine.messages import TokenUsage
from zq_notebook.engine.ports import ProviderClient
from zq_notebook.engine.turn import TurnEngine
from zq_notebook.errors import ModelNotSetError, UsageError
from zq_notebook.notebook.cell_line import CellArguments
from zq_notebook.notebook.settings import Choices, Settings
from zq_notebook.permissions.decision import PermissionEngine
from zq_notebook.providers.scripted import ScriptedProvider
from zq_notebook.tools.registry import ToolRegistry

DEFAULT_SESSION = "default"


class TurnChoice(msgspec.Struct, frozen=True):
    """What holds for one turn: the session's choices, overridden by the cell's flags."""

    model: str
    role: str
    mode: str
    max_iterations: int
    reasoning_effort: str | None


class Session:
    """One conversation. The engine is made with the first turn and kept until ``--new``.

    ``look_up`` gives the settings as they are now, from the user's choices and, once the conversation has begun, from
    those with which it did. ``add_tools`` puts the kernel's own tools into the engine's registry.
    """

    def __init__(
        self,
        name: str,
        look_up: Callable[[Choices, Settings | None], Settings],
        roles: AgentRegistry,
        add_tools: Callable[[ToolRegistry], None],
    ) -> None:
        self.name = name
        self.choices = Choices()
        self.roles = roles
        self.usage = TokenUsage()
        self.cost = 0.0
        self.turns = 0
        self._look_up = look_up
        self._add_tools = add_tools
        self._engine: TurnEngine | None = None
        self._begun: Settings | None = None
        self._providers: dict[tuple[str, str | None], tuple[object | None, ProviderClient]] = {}

    @property
    def settings(self) -> Settings:
        """What holds now. Raises UsageError for a setting that cannot be."""
        return self._look_up(self.choices, self._begun)

    def folder(self, *, new: bool) -> Path:
        """The workspace of the next turn, which may begin a ``new`` conversation."""
        return self._look_up(self.choices, None if new else self._begun).workspace

    @property
    def engine(self) -> TurnEngine:
        """The session's engine."""
        if self._engine is None:
            self._engine = self._make_engine()
        return self._engine

    @property
    def permissions(self) -> PermissionEngine:
        """What the session may do, and what the user has allowed it."""
        permissions = self.engine.permissions
        assert isinstance(permissions, PermissionEngine)
        return permissions

    def choose_mode(self, mode: str) -> None:
        """Change the mode, for a running turn too."""
        self.choices.mode = mode
        if self._engine is not None:
            self.permissions.mode = mode

    def reset(self) -> None:
        """Forget the conversation: history, allowances, totals and background commands. What the user chose stays."""
        if self._engine is not None:
            registry = self._engine.registry
            assert isinstance(registry, ToolRegistry)
            registry.close()
        self._engine = None
        self._begun = None
        self._providers.clear()
        self.usage = TokenUsage()
        self.cost = 0.0
        self.turns = 0

    def choose(self, arguments: CellArguments) -> TurnChoice:
        """What holds for a turn with these flags.

        Raises:
            ModelNotSetError: there is no model.
            UsageError: the role is unknown.
        """
        settings = self.settings
        choice = TurnChoice(
            model=arguments.model or settings.model,
            role=arguments.role or settings.role,
            mode=arguments.mode or settings.mode,
            max_iterations=arguments.max_iterations or settings.max_iterations,
            reasoning_effort=settings.reasoning_effort,
        )
        if not choice.model:
            raise ModelNotSetError
        self.roles.get(choice.role)
        return choice

    @contextmanager
    def prepared(self, choice: TurnChoice) -> Iterator[TurnEngine]:
        """The engine, set up for one turn; afterwards the session's own mode holds again.

        Raises:
            UsageError: the turn before has not ended yet, or the model's provider cannot be made.
        """
        engine = self.engine
        if engine.busy:
            raise UsageError(
                "The turn that was stopped here is still ending: a tool or the model's server holds it up. Try again "
                "in a moment, or start afresh with %%agent --new."
            )
        usual = self.settings.mode
        engine.model = choice.model
        engine.provider = self._provider(choice.model)
        engine.max_iterations = choice.max_iterations
        engine.reasoning_effort = choice.reasoning_effort
        self.permissions.mode = choice.mode
        prompt = self._prompt(choice.role)
        if engine.messages[0]["content"] != prompt:
            engine.set_system_prompt(prompt)
        try:
            yield engine
        finally:
            self.permissions.mode = self.choices.mode or usual

    def add_up(self, usage: TokenUsage, cost: float | None) -> None:
        """Count one finished turn."""
        self.turns += 1
        self.usage += usage
        self.cost += cost or 0.0

    def _provider(self, model: str) -> ProviderClient:
        # A cell that registers the model again must have an effect on a session that has used it.
        registered = registration(model)
        log_dir = self.settings.log_dir
        known = self._providers.get((model, log_dir))
        if known is None or known[0] is not registered:
            known = self._providers[model, log_dir] = registered, provider_for(model, log_dir)
        return known[1]

    def _prompt(self, role: str) -> str:
        settings = self._begun or self.settings
        today = datetime.date.today().isoformat()
        return self.roles.build_system_prompt(role, settings.workspace, today, settings.lang, kernel=True)

    def _make_engine(self) -> TurnEngine:
        settings = self.settings
        engine = create_default_engine(
            workspace=settings.workspace,
            model=settings.model,
            # Each turn brings its own; to make one now could fail for a model that is never used.
            provider=ScriptedProvider(),
            mode=settings.mode,
            max_iterations=settings.max_iterations,
            reasoning_effort=settings.reasoning_effort,
            allowed_commands=settings.allowed_commands,
            shell_policy=settings.shell_policy,
            instructions=self._prompt(settings.role),
            lang=settings.lang,
            log_dir=settings.log_dir,
        )
        registry = engine.registry
        assert isinstance(registry, ToolRegistry)
        # Nothing in a notebook grants directories yet, and a tool that always fails only misleads the model.
        registry.remove("request_directory")
        self._add_tools(registry)
        self._begun = settings
        return engine
