"""A second listener beside the event stream (Manual §11.1)."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from zq_notebook.engine import events as ev
from zq_notebook.text import logs

logger = logs.logger("zq_notebook.hooks")


class EngineHook:
    """Override what you need; every method does nothing by default.

    Hooks are synchronous and must be quick: the engine waits for them. An exception is logged and swallowed.
    """

    def on_turn_start(self, input: str) -> None:
        """A turn begins."""

    def on_turn_end(self, status: str, iterations: int, produced_files: Sequence[str]) -> None:
        """A turn is over."""

    def on_assistant_delta(self, text: str) -> None:
        """Streamed text."""

    def on_reasoning_delta(self, text: str) -> None:
        """Streamed reasoning."""

    def on_assistant_message(
        self, text: str, tool_calls: Sequence[str], usage: Mapping[str, Any] | None = None
    ) -> None:
        """A complete reply, with its token usage when the server reported it."""

    def on_tool_proposed(self, name: str, args: Mapping[str, Any]) -> None:
        """The model proposes a call."""

    def on_tool_started(self, name: str) -> None:
        """A tool starts."""

    def on_tool_finished(self, name: str, status: str, result_preview: str) -> None:
        """A tool call has its result."""

    def on_permission_required(self, name: str, reason: str) -> None:
        """The approver is about to be asked."""

    def on_iteration_end(self, iteration: int) -> None:
        """One request and its tool calls are done."""

    def on_compacting(self, info: Mapping[str, Any]) -> None:
        """History is about to be compacted."""

    def on_compacted(self, text: str, info: Mapping[str, Any]) -> None:
        """History was compacted; ``text`` is the summary's beginning."""

    def on_error(self, error: str, error_type: str, info: Mapping[str, Any] | None = None) -> None:
        """The turn cannot go on."""

    def on_retry(self, attempt: int, max: int, reason: str) -> None:
        """A request is about to be sent again."""

    def on_interrupted(self, iterations: int) -> None:
        """The user stopped the turn."""

    def on_event(self, type: str, data: Mapping[str, Any]) -> None:
        """Any event that has no callback of its own."""


def _callback(event: ev.Event) -> tuple[str, tuple[Any, ...]]:
    """The one method that belongs to ``event``, and its arguments."""
    match event:
        case ev.AssistantDelta():
            return "on_assistant_delta", (event.text,)
        case ev.ReasoningDelta():
            return "on_reasoning_delta", (event.text,)
        case ev.TurnStart():
            return "on_turn_start", (event.input,)
        case ev.TurnEnd():
            return "on_turn_end", (event.status, event.iterations, list(event.produced_files))
        case ev.AssistantMessage():
            usage = None if event.usage is None else dict(event.usage)
            return "on_assistant_message", (event.text, list(event.tool_calls), usage)
        case ev.ToolProposed():
            # A copy: a hook that changes it must not change what the consumer of the stream is shown.
            return "on_tool_proposed", (event.name, copy.deepcopy(event.arguments))
        case ev.ToolStarted():
            return "on_tool_started", (event.name,)
        case ev.ToolFinished():
            return "on_tool_finished", (event.name, event.status, event.result_preview or "")
        case ev.PermissionRequired():
            return "on_permission_required", (event.name, event.reason)
        case ev.IterationEnd():
            return "on_iteration_end", (event.iteration,)
        case ev.Compacting():
            return "on_compacting", (event.data,)
        case ev.Compacted():
            return "on_compacted", (event.summary_preview or "", event.data)
        case ev.ErrorEvent():
            return "on_error", (event.error, event.error_type, event.data)
        case ev.LlmRetry():
            return "on_retry", (event.attempt, event.max, event.reason)
        case ev.Interrupted():
            return "on_interrupted", (event.iterations,)
        case _:
            return "on_event", (event.type.value, copy.deepcopy(event.data))


def _call(hook: EngineHook, method: str, args: tuple[Any, ...]) -> None:
    """Call one method of a hook; what it raises is logged and swallowed."""
    try:
        result = getattr(hook, method)(*args)
    except Exception:
        logger.exception("%s.%s failed", type(hook).__name__, method)
        return
    if inspect.iscoroutine(result):
        result.close()
        names = type(hook).__name__, method
        logger.error("%s.%s is a coroutine function and was not run: hooks are plain functions", *names)


def notify(hook: EngineHook | None, event: ev.Event) -> None:
    """Tell ``hook`` about ``event``; what it raises is logged and swallowed."""
    if hook is not None:
        _call(hook, *_callback(event))


class CompositeHook(EngineHook):
    """Several hooks as one (Manual §11.2). One that raises does not keep the others from being called."""

    def __init__(self, hooks: Iterable[EngineHook]) -> None:
        self.hooks = list(hooks)

    def _forward(self, method: str, *args: Any) -> None:
        for hook in self.hooks:
            _call(hook, method, args)


def _forwarder(method: str) -> Callable[..., None]:
    def call(self: CompositeHook, *args: Any) -> None:
        self._forward(method, *args)

    call.__name__ = method
    call.__doc__ = getattr(EngineHook, method).__doc__
    return call


for _name in [name for name in vars(EngineHook) if name.startswith("on_")]:
    setattr(CompositeHook, _name, _forwarder(_name))
