"""What the engine needs from the floors above it, as protocols: a model, a tool table, a permission engine."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from zq_notebook.cancel import CancelToken
from zq_notebook.engine.messages import StreamChunk
from zq_notebook.toolio import ToolContext, ToolOutput


class StreamOptions(msgspec.Struct, kw_only=True):
    """What goes with one model request (Manual §10.2). ``log_time`` is ISO 8601 in UTC."""

    req_id: str
    log_time: str
    task_id: str = ""
    reasoning_effort: str | None = None
    cancel: CancelToken = msgspec.field(default_factory=CancelToken)


class ProviderClient(Protocol):
    """A model behind two methods (Manual §10.2). ``stream`` may be an async generator function or a coroutine."""

    def stream(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        opts: StreamOptions,
    ) -> AsyncIterable[StreamChunk] | Awaitable[AsyncIterable[StreamChunk]]:
        """Ask the model; the reply comes as chunks."""
        ...

    async def chat(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        options: Mapping[str, Any] | None,
        opts: StreamOptions,
        params: Mapping[str, Any] | None = None,
    ) -> str | None:
        """One small request without tools; ``None`` when there is no answer."""
        ...


class PermissionDecision(Protocol):
    """What a permission engine says about one call (Manual §8.1)."""

    @property
    def allowed(self) -> bool: ...
    @property
    def needs_user(self) -> bool: ...
    @property
    def reason(self) -> str: ...


class PermissionPolicy(Protocol):
    """What the engine asks of a permission engine."""

    def evaluate(self, tool_name: str, arguments: Mapping[str, Any], metadata: Any) -> PermissionDecision: ...
    def allow_tool_for_session(self, tool_name: str) -> None: ...
    def allow_command_for_session(self, command: str) -> None: ...


class ToolInfo(Protocol):
    """What the engine looks at before it runs a tool."""

    @property
    def metadata(self) -> Any: ...
    @property
    def concurrent(self) -> bool: ...
    @property
    def enabled(self) -> bool: ...
    def parse(self, arguments: str) -> Mapping[str, Any]:
        """The arguments that the tool will get. Raises ToolArgumentError with a message for the model."""
        ...


class ToolTable(Protocol):
    """The tools of a session."""

    def schemas(self) -> Sequence[Mapping[str, Any]]: ...
    def get(self, name: str) -> ToolInfo | None: ...
    async def call(self, name: str, arguments: str | Mapping[str, Any], ctx: ToolContext) -> ToolOutput: ...
