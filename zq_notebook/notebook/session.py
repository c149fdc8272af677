"""A conversation in a notebook: one engine, and what the user chose for it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from zq_notebook.agents.registry import AgentRegistry
from zq_notebook.assembly import create_default_engine, provider_for, registration
from zq_notebook.engine.messages import TokenUsage
from zq_notebook.engine.ports import ProviderClient
from zq_notebook.engine.turn import TurnEngine
from zq_notebook.errors import ModelNotSetError
from zq_notebook.notebook.cell_line import CellArguments
from zq_notebook.notebook.settings import Settings
from zq_notebook.permissions.decision import PermissionEngine
from zq_notebook.tools.registry import ToolRegistry

DEFAULT_SESSION = "default"


class TurnChoice(msgspec.Struct, frozen=True):
    """What holds for one turn: the session's choices, overridden by the cell's flags."""

    model: str
    role: str
    mode: str
    max_iterations: int


class Session:
    """One conversation. The engine is made with the first turn and kept until ``--new``.

    ``add_tools`` puts the kernel's own tools into the engine's registry.
    """

    def __init__(self, name: str, settings: Settings, roles: AgentRegistry, add_tools: Callable[[ToolRegistry], None]):
        self.name = name
        self.settings = settings
        self.roles = roles
        self.usage = TokenUsage()
        self.cost = 0.0
        self.turns = 0
        self._add_tools = add_tools
        self._engine: TurnEngine | None = None
        self._providers: dict[str, tuple[object | None, ProviderClient]] = {}

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

    def reset(self) -> None:
        """Forget the conversation: history, allowances and totals. What the user chose stays."""
        self._engine = None
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
        )
        if not choice.model:
            raise ModelNotSetError
        self.roles.get(choice.role)
        return choice

    @contextmanager
    def prepared(self, choice: TurnChoice) -> Iterator[TurnEngine]:
        """The engine, set up for one turn; afterwards the session's own choices hold again."""
        engine = self.engine
        engine.model = choice.model
        engine.provider = self._provider(choice.model)
        engine.max_iterations = choice.max_iterations
        self.permissions.mode = choice.mode
        prompt = self._prompt(choice.role)
        if engine.messages[0]["content"] != prompt:
            engine.set_system_prompt(prompt)
        try:
            yield engine
        finally:
            self.permissions.mode = self.settings.mode

    def add_up(self, usage: TokenUsage, cost: float | None) -> None:
        """Count one finished turn."""
        self.turns += 1
        self.usage += usage
        self.cost += cost or 0.0

    def _provider(self, model: str) -> ProviderClient:
        # A cell that registers the model again must have an effect on a session that has used it.
        registered = registration(model)
        known = self._providers.get(model)
        if known is None or known[0] is not registered:
            known = self._providers[model] = registered, provider_for(model, self.settings.log_dir)
        return known[1]

    def _prompt(self, role: str) -> str:
        settings = self.settings
        today = datetime.date.today().isoformat()
        return self.roles.build_system_prompt(role, settings.workspace, today, settings.lang, kernel=True)

    def _make_engine(self) -> TurnEngine:
        settings = self.settings
        engine = create_default_engine(
            workspace=settings.workspace,
            model=settings.model,
            provider=self._provider(settings.model),
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
        self._add_tools(registry)
        return engine
