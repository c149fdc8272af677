"""The turn: request, stream, propose, decide, run, repeat (Manual §6, §9.1, §12)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zq_notebook.cancel import CancelToken
from zq_notebook.engine import history
from zq_notebook.engine.approval import Approver, PermissionRequest
from zq_notebook.engine.clock import new_id
from zq_notebook.engine.compaction import CompactionState, Compactor
from zq_notebook.engine.events import Event, TurnEnd, TurnStart
from zq_notebook.engine.hooks import EngineHook
from zq_notebook.engine.loop import TurnLoop
from zq_notebook.engine.messages import Message, ToolCall
from zq_notebook.engine.ports import PermissionPolicy, ProviderClient, ToolTable
from zq_notebook.engine.steering import SteeringQueue
from zq_notebook.errors import ApproverMissingError, EngineBusyError, ModelNotSetError
from zq_notebook.languages.catalog import get_prompts, resolve_lang

if TYPE_CHECKING:
    from zq_notebook.languages.tables import PromptSet

DEFAULT_MAX_ITERATIONS = 800


# How often the loop is let go round while an abandoned stream is being closed; wrapped streams take longer.
_CLOSING_ROUNDS = 16


class _Claim:
    """One turn's hold on its engine.

    ``closing`` says that the consumer has left and the turn is cleaning up; ``released`` is set when it is over.
    """

    def __init__(self) -> None:
        self.cancel = CancelToken()
        self.released = CancelToken()
        self.closing = False
        self.loop = asyncio.get_running_loop()


def _nobody_to_ask(request: PermissionRequest) -> str:
    raise ApproverMissingError(request.tool_name)


class TurnEngine:
    """The runtime of one session: its history, its model, its tools and its permissions (Manual §5, §6.2).

    One engine per session; one turn at a time. All arguments are keyword-only.

    Args:
        provider: the model (:class:`ProviderClient`).
        registry: the tools the model may call.
        permissions: decides about each call.
        model: model identifier; an empty one raises in :meth:`run`.
        instructions: system prompt, the first message of the history.
        gen_session_name_prompt: prompt for naming the session; by default the one of ``lang``.
        lang: ``en``, ``zh``, ``zh-TW``, ``ja``, ``ko`` or ``es``, of naming, the compaction summary and what the model
            is told in place of a result; by default ZQ_LANG, else ``en``.
        max_iterations: model requests per turn.
        finalize_on_max_iterations: at the limit, ask once more without tools for a closing answer.
        reasoning_effort: ``low``, ``medium`` or ``high``, passed through to the provider.
        messages: history to start from; instructions are put in front unless it begins with a system message.
        hook: told about every event.
        context_window: the model's window in tokens; by default looked up, at last 128,000.
        threshold_pct: share of the window at which history is summarised.
        soft_threshold_pct: share of the window at which old tool results are dropped; by default 75 % of the above.
        cap_tokens: absolute upper limit of the threshold in tokens.
        tool_result_dir: where results over budget are written.
        window_of: looks up a model's window in tokens where ``context_window`` is not given.

    Raises:
        UsageError: an unknown language, or a threshold or window that cannot be.
    """

    def __init__(
        self,
        *,
        provider: ProviderClient,
        registry: ToolTable,
        permissions: PermissionPolicy,
        model: str,
        instructions: str,
        gen_session_name_prompt: str | None = None,
        lang: str | None = None,
        max_iterations: int = DEFAULT_MAX_ITERATIONS,
        finalize_on_max_iterations: bool = False,
        reasoning_effort: str | None = None,
        messages: Sequence[Mapping[str, Any]] | None = None,
        hook: EngineHook | None = None,
        context_window: int | None = None,
        threshold_pct: float = 0.8,
        soft_threshold_pct: float | None = None,
        cap_tokens: int | None = None,
        tool_result_dir: str | Path | None = None,
        window_of: Callable[[str], int | None] | None = None,
    ) -> None:
        self.provider = provider
        self.registry = registry
        self.permissions = permissions
        self.model = model
        self.lang = resolve_lang(lang)
        self.gen_session_name_prompt = gen_session_name_prompt
        self.max_iterations = max_iterations
        self.finalize_on_max_iterations = finalize_on_max_iterations
        self.reasoning_effort = reasoning_effort
        self.hook = hook
        self.context_window = context_window
        self.threshold_pct = threshold_pct
        self.soft_threshold_pct = soft_threshold_pct
        self.cap_tokens = cap_tokens
        self.tool_result_dir = Path(tool_result_dir) if tool_result_dir is not None else None
        self.approver: Approver = _nobody_to_ask
        self.handlers: dict[str, Callable[..., Any]] = {}
        self.messages: list[Message] = history.restored(messages or (), self.texts.results.missing)
        if not self.messages or self.messages[0].get("role") != "system":
            self.messages.insert(0, Message(role="system", content=instructions))
        self.steering = SteeringQueue()
        self.compactor = Compactor(self, window_of)
        self.retriable = False
        self.call_ids = history.call_ids(self.messages)
        self._lock = threading.Lock()
        self._claim: _Claim | None = None

    # What can be changed at runtime (Manual §6.3)

    def set_approver(self, approver: Approver) -> None:
        """Set who is asked when a call needs approval: a function or coroutine function (Manual §8.3)."""
        self.approver = approver

    def set_question_handler(self, handler: Callable[..., Any] | None) -> None:
        """Set this engine's own handler for ``ask_user``; it wins over the process-wide one."""
        self._set_handler("question", handler)

    def set_plan_handler(self, handler: Callable[..., Any] | None) -> None:
        """Set this engine's own handler for ``propose_plan``."""
        self._set_handler("plan", handler)

    def set_directory_handler(self, handler: Callable[..., Any] | None) -> None:
        """Set this engine's own handler for ``request_directory``."""
        self._set_handler("directory", handler)

    def _set_handler(self, kind: str, handler: Callable[..., Any] | None) -> None:
        if handler is None:
            self.handlers.pop(kind, None)
        else:
            self.handlers[kind] = handler

    def set_system_prompt(self, text: str) -> None:
        """Replace the system prompt; the next request uses it (Manual §6.3)."""
        prompt = Message(role="system", content=text)
        if self.messages and self.messages[0].get("role") == "system":
            self.messages[0] = prompt
        else:
            self.messages.insert(0, prompt)

    def request_interrupt(self) -> None:
        """Stop the running turn: its model stream and its tools (Manual §12.2).

        Callable from any thread and from a signal handler; without a running turn it does nothing.
        """
        claim = self._claim
        if claim is not None:
            claim.cancel.set()

    def queue_steering(
        self,
        text: str,
        attachments: Sequence[Mapping[str, Any]] | None = None,
        refs: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Add an instruction that the model gets between two iterations (Manual §12.5)."""
        self.steering.add(text, attachments, refs)

    def remove_steering(self, text: str) -> bool:
        """Take a queued instruction back; false when the model already has it."""
        return self.steering.remove(text)

    @property
    def texts(self) -> PromptSet:
        """What the engine says to the model, in the language of the session."""
        return get_prompts(self.lang)

    @property
    def compaction_state(self) -> CompactionState:
        """What compaction knows and has done, for reading (Manual §6.3, §14)."""
        return self.compactor.state

    @property
    def busy(self) -> bool:
        """Whether a turn is running."""
        return self._claim is not None

    # Turns

    async def run(
        self,
        text: str,
        task_id: str | None = None,
        attachments: Sequence[Mapping[str, Any]] | None = None,
        refs: Sequence[Mapping[str, Any]] | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Run one turn and yield its events; the turn advances as they are consumed (Manual §5, §9).

        The model is not read ahead, the approver is asked after ``permission_required`` was consumed, and leaving with
        ``break`` or cancellation stops everything. ``turn_end`` is the last event; the next turn may begin with it.

        Args:
            text: what the user says.
            task_id: identifier of the turn in its events; made up when missing.
            attachments: files for this turn as ``{name, mimeType, dataUrl}`` (Manual §13.1).
            refs: the same files as stored, ``{name, mimeType, size, path}``.

        Raises:
            ModelNotSetError: no model.
            EngineBusyError: another turn of this engine is running; that turn is not harmed.
            Exception: what the approver raised, after ``turn_end``.
        """
        claim = await self._begin()
        async with aclosing(self._play(claim, task_id, lambda turn: turn.opening(text, attachments, refs))) as events:
            async for event in events:
                yield event

    async def retry(self, task_id: str | None = None) -> AsyncGenerator[Event, None]:
        """Ask again after a turn that ended with a retriable error; otherwise it ends at once (Manual §12.3)."""
        if not self.retriable:
            return
        claim = await self._begin()
        async with aclosing(self._play(claim, task_id, TurnLoop.reopening)) as events:
            async for event in events:
                yield event

    async def resume(self, task_id: str | None = None) -> AsyncGenerator[Event, None]:
        """Go on with calls at the end of the history that lack results; without any it ends at once (Manual §12.4)."""
        if not history.pending_calls(self.messages):
            return
        claim = await self._begin()
        pending = history.pending_calls(self.messages)
        async with aclosing(self._play(claim, task_id, TurnLoop.reopening, pending)) as events:
            async for event in events:
                yield event

    async def _play(
        self,
        claim: _Claim,
        task_id: str | None,
        opening: Callable[[TurnLoop], TurnStart],
        pending: Sequence[ToolCall] = (),
    ) -> AsyncGenerator[Event, None]:
        turn = TurnLoop(self, task_id or new_id(), claim.cancel)
        try:
            async with aclosing(turn.play(opening(turn), pending)) as events:
                async for event in events:
                    if isinstance(event, TurnEnd):
                        # Over: whoever gets this event may start the next turn at once.
                        self._release(claim)
                    try:
                        yield event
                    except GeneratorExit:
                        claim.closing = True
                        raise
        finally:
            turn.close()
            self._release(claim)

    async def _begin(self) -> _Claim:
        """Claim the engine, after a turn whose stream was left with ``break`` has cleaned up."""
        if not self.model:
            raise ModelNotSetError
        await self._wait_for_abandoned_turn()
        with self._lock:
            # A turn whose loop was closed under it can never end by itself.
            if self._claim is not None and not self._claim.loop.is_closed():
                raise EngineBusyError
            claim = self._claim = _Claim()
        self.retriable = False
        return claim

    async def _wait_for_abandoned_turn(self) -> None:
        """``break`` leaves the generator to the loop, which closes it a moment later: that turn is not a busy one."""
        for _ in range(_CLOSING_ROUNDS):
            claim = self._claim
            if claim is None or claim.loop.is_closed():
                return
            if claim.closing:
                await claim.released.wait_async()
                return
            await asyncio.sleep(0)

    def _release(self, claim: _Claim) -> None:
        with self._lock:
            if self._claim is claim:
                self._claim = None
        claim.released.set()
