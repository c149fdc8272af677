"""Running the tool calls of one reply: plan, ask, run, answer in the model's order (Manual §9.1, §12.6)."""

from __future__ import annotations

import asyncio
import copy
import json
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zq_notebook.cancel import CancelToken
from zq_notebook.engine.approval import ApprovalOutcome, Approver, ApproverFailed, PermissionRequest, ask
from zq_notebook.engine.clock import timestamp
from zq_notebook.engine.events import (
    EVENT_CLASSES,
    Event,
    EventType,
    PermissionRequired,
    ToolFinished,
    ToolProposed,
    ToolStarted,
)
from zq_notebook.engine.history import parse_arguments, tool_message
from zq_notebook.engine.hooks import EngineHook, notify
from zq_notebook.engine.interrupt import InterruptScope, TurnInterrupted
from zq_notebook.engine.messages import Message, ToolCall
from zq_notebook.engine.ports import PermissionPolicy, ToolInfo, ToolTable
from zq_notebook.errors import ToolArgumentError, UsageError
from zq_notebook.text import logs
from zq_notebook.toolio import ToolContext, ToolOutput

if TYPE_CHECKING:
    from zq_notebook.languages.tables import ResultTexts

logger = logs.logger("zq_notebook.engine")

PREVIEW_CHARS = 1000
# A stopped tool may hand over what it has; after that it is cancelled, and at last left alone.
GRACE_SECONDS = 0.25
ABANDON_SECONDS = 2.0

# What a tool may add to the stream; the other events have their order, which the engine keeps.
TOOL_EVENTS = (EventType.ASK_USER_QUESTION, EventType.PLAN_PROPOSED, EventType.DIRECTORY_REQUESTED)

# Tasks of tools that do not end when they are cancelled; the loop itself would let them be collected.
_abandoned: set[asyncio.Task[None]] = set()


class _Call:
    """One proposed call and how far it has come."""

    def __init__(self, call: ToolCall) -> None:
        self.id = call.id
        self.name = call.name
        self.raw = call.arguments
        self.arguments: Mapping[str, Any] = {}
        self.proposed = False
        self.recorded = False
        self.running_since: float | None = None
        self.output: ToolOutput | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def duration_ms(self) -> int | None:
        return None if self.running_since is None else int((time.perf_counter() - self.running_since) * 1000)


class Dispatcher:
    """The calls of one reply. Iterate :meth:`run` for their events; results are appended to ``messages``.

    A consumer that is slow or leaves holds up the calls: the approver is asked once ``permission_required`` was taken
    and the consumer came back for more, and no batch starts before the events of the one before it were taken. Within
    a batch a tool does not wait for anybody to take its ``tool_started``.
    """

    def __init__(
        self,
        *,
        registry: ToolTable,
        permissions: PermissionPolicy,
        approver: Approver,
        messages: list[Message],
        task_id: str,
        cancel: CancelToken,
        scope: InterruptScope,
        hook: EngineHook | None,
        handlers: Mapping[str, Callable[..., Any]],
        result_dir: Path | None,
        produced_files: list[str],
        texts: ResultTexts,
    ) -> None:
        self._registry = registry
        self._permissions = permissions
        self._approver = approver
        self._messages = messages
        self._task_id = task_id
        self._cancel = cancel
        self._scope = scope
        self._hook = hook
        self._handlers = handlers
        self._result_dir = result_dir
        self._produced_files = produced_files
        self._texts = texts
        self._loop = asyncio.get_running_loop()
        self._events: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._posted = 0
        self._delivered = 0
        self._delivery = asyncio.Event()

    async def run(self, calls: Sequence[ToolCall]) -> AsyncGenerator[Event, None]:
        """Propose every call, then run them batch by batch.

        Raises :class:`TurnInterrupted` when the user stopped, :class:`ApproverFailed` when the approver did not
        answer; either way every call has its result in the history and its ``tool_finished`` event. When the consumer
        leaves, only the hook hears these events.
        """
        planned = [_Call(call) for call in calls]
        failure: Exception | None = None
        try:
            for call in planned:
                call.proposed = True
                arguments = parse_arguments(call.raw) or {}
                yield ToolProposed(req_id=call.id, name=call.name, arguments=arguments, task_id=self._task_id)
            try:
                for batch in self._batches(planned):
                    async with aclosing(self._run_batch(batch)) as events:
                        async for event in events:
                            yield event
                    self._record(batch)
            except Exception as error:
                failure = error
                self._close(planned, error)
                while self._events:
                    yield self._events.popleft()
        except (GeneratorExit, asyncio.CancelledError):
            self._cancel.set()
            try:
                await self._end_tasks(planned)
            finally:
                self._close(planned, TurnInterrupted())
                for event in self._events:
                    notify(self._hook, event)
            raise
        finally:
            self._record(planned)
        if failure is not None:
            raise failure

    def _batches(self, calls: Sequence[_Call]) -> Iterator[list[_Call]]:
        """Neighbouring calls that may run beside others together, every other call alone, in the model's order."""
        batch: list[_Call] = []
        for call in calls:
            if self._runs_beside_others(call):
                batch.append(call)
                continue
            if batch:
                yield batch
                batch = []
            yield [call]
        if batch:
            yield batch

    def _runs_beside_others(self, call: _Call) -> bool:
        """Low risk, and nobody has to be asked."""
        tool = self._registry.get(call.name)
        if tool is None or not tool.concurrent:
            return False
        arguments = parse_arguments(call.raw) or {}
        try:
            return not self._permissions.evaluate(call.name, arguments, tool.metadata).needs_user
        except Exception:
            # Evaluated again when its turn comes, where the failure becomes the call's result.
            return False

    async def _run_batch(self, batch: Sequence[_Call]) -> AsyncGenerator[Event, None]:
        for call in batch:
            call.task = asyncio.create_task(self._run_call(call))
            call.task.add_done_callback(self._call_ended)
        while True:
            try:
                await self._scope.wait(lambda: self._next_step(batch))
            except TurnInterrupted as interruption:
                await self._stop(batch)
                self._close(batch, interruption)
                while self._events:
                    event = self._events.popleft()
                    if not isinstance(event, PermissionRequired):
                        yield event
                raise
            while self._events:
                yield self._events.popleft()
                self._delivered += 1
                self._delivery.set()
            if _all_done(batch) and not self._events:
                break
        for call in batch:
            if call.task is not None and not call.task.cancelled() and (error := call.task.exception()) is not None:
                raise error

    def _call_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            # Looking at it keeps asyncio from complaining about a failure that an interruption has overtaken.
            task.exception()
        self._wake.set()

    async def _next_step(self, batch: Sequence[_Call]) -> None:
        """Until there is an event to pass on or a call has ended."""
        if self._events or _all_done(batch):
            return
        self._wake.clear()
        await self._wake.wait()

    async def _run_call(self, call: _Call) -> None:
        try:
            await self._decide_and_run(call)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                self._interrupt(call)
                raise
            # Something inside the tool was cancelled, not the call.
            self._finish(call, "error", _failed(error))
        except ApproverFailed:
            raise
        except Exception as error:
            # A permission engine or registry of somebody else's that breaks must not let the call through.
            logger.exception("the call of %s failed outside the tool", call.name)
            self._finish(call, "error", _failed(error))

    async def _decide_and_run(self, call: _Call) -> None:
        tool = self._registry.get(call.name)
        if tool is None or not tool.enabled:
            # The registry words the error for the model; nothing runs.
            self._finish(call, "error", await self._registry.call(call.name, call.raw, self._context(call)))
            return
        try:
            # What is judged, shown and run is one and the same reading of the model's text.
            call.arguments = tool.parse(call.raw)
        except ToolArgumentError as error:
            self._finish(call, "error", _failed(error))
            return
        if not await self._may_run(call, tool):
            return
        if self._cancel.is_set():
            # Stopped while an approver that does not notice was being asked.
            self._interrupt(call)
            return
        self._post(ToolStarted(task_id=self._task_id, req_id=call.id, name=call.name, start_time=timestamp()))
        call.running_since = time.perf_counter()
        output = await self._registry.call(call.name, call.arguments, self._context(call))
        status = "interrupted" if self._cancel.is_set() else "ok" if output.ok else "error"
        self._finish(call, status, output)

    async def _may_run(self, call: _Call, tool: ToolInfo) -> bool:
        """Whether the permission engine, or the user where it wants one asked, lets the call through."""
        decision = self._permissions.evaluate(call.name, call.arguments, tool.metadata)
        if not decision.needs_user:
            if not decision.allowed:
                text = self._texts.denied_by_permissions.format(reason=decision.reason)
                self._finish(call, "denied", ToolOutput(text=text, ok=False), decision.reason)
            return decision.allowed
        await self._deliver(
            PermissionRequired(
                task_id=self._task_id,
                req_id=call.id,
                name=call.name,
                # Copies: what a listener does to them must not change what runs.
                arguments=copy.deepcopy(call.arguments),
                reason=decision.reason,
                category=str(getattr(tool.metadata, "category", "")),
            )
        )
        request = PermissionRequest(
            tool_name=call.name,
            arguments=copy.deepcopy(call.arguments),
            metadata=tool.metadata,
            reason=decision.reason,
            tool_call_id=call.id,
        )
        reply = await ask(self._approver, request)
        if reply.outcome is ApprovalOutcome.DENY:
            text = self._texts.denied_by_user
            if reply.reason:
                text = self._texts.denied_by_user_reason.format(reason=reply.reason)
            self._finish(call, "denied", ToolOutput(text=text, ok=False), reply.reason)
            return False
        if reply.outcome is ApprovalOutcome.ALWAYS_TOOL:
            self._permissions.allow_tool_for_session(call.name)
        elif reply.outcome is ApprovalOutcome.ALWAYS_COMMAND:
            self._permissions.allow_command_for_session(str(call.arguments.get("command", "")))
        return True

    def _context(self, call: _Call) -> ToolContext:
        def emit(event_type: str, /, **fields: Any) -> None:
            if event_type not in TOOL_EVENTS:
                raise UsageError(f"A tool cannot emit {event_type}, only {', '.join(TOOL_EVENTS)}.")
            event = EVENT_CLASSES[event_type](**{"task_id": self._task_id, **fields})
            self._loop.call_soon_threadsafe(self._post, event)

        return ToolContext(
            cancel=self._cancel,
            tool_call_id=call.id,
            name=call.name,
            task_id=self._task_id,
            handlers=self._handlers,
            result_dir=self._result_dir,
            emit=emit,
            produced_files=self._produced_files,
        )

    def _post(self, event: Event) -> None:
        self._events.append(event)
        self._posted += 1
        self._wake.set()

    async def _deliver(self, event: Event) -> None:
        """Post an event and wait until the consumer has taken it and come back for more."""
        self._post(event)
        number = self._posted
        while self._delivered < number:
            self._delivery.clear()
            await self._delivery.wait()

    def _finish(self, call: _Call, status: str, output: ToolOutput, reason: str | None = None) -> None:
        """The call is over. What an abandoned tool says later is not heard any more."""
        if call.output is not None:
            return
        call.output = output
        if not call.proposed:
            return
        self._post(
            ToolFinished(
                task_id=self._task_id,
                req_id=call.id,
                name=call.name,
                status=status,
                reason=reason,
                duration=call.duration_ms,
                result_preview=output.text[:PREVIEW_CHARS],
                output=output,
            )
        )

    def _close(self, calls: Sequence[_Call], failure: Exception) -> None:
        """Finish the calls that ``failure`` keeps from being finished."""
        for call in calls:
            if isinstance(failure, TurnInterrupted):
                self._interrupt(call)
            elif isinstance(failure, ApproverFailed):
                self._finish(call, "denied", ToolOutput(text=self._texts.approval_failed, ok=False))
            else:
                self._finish(call, "error", _failed(failure))

    def _interrupt(self, call: _Call) -> None:
        """The user stopped it; whether it had begun decides what the model has to reckon with."""
        text = self._texts.not_started if call.running_since is None else self._texts.interrupted
        self._finish(call, "interrupted", ToolOutput(text=text, ok=False))

    async def _stop(self, batch: Sequence[_Call]) -> None:
        """End what runs: first it may hand over what it has, then it is cancelled, at last it is left alone."""
        running = [call.task for call in batch if call.task is not None and call.running_since is not None]
        for call in batch:
            if call.task is not None and call.running_since is None:
                call.task.cancel()
        if running:
            await asyncio.wait(running, timeout=GRACE_SECONDS)
        await self._end_tasks(batch)

    async def _end_tasks(self, calls: Sequence[_Call]) -> None:
        tasks = [call.task for call in calls if call.task is not None and not call.task.done()]
        for call in calls:
            call.task = None
        for task in tasks:
            task.cancel()
            _abandoned.add(task)
            task.add_done_callback(_abandoned.discard)
        if tasks:
            await asyncio.wait(tasks, timeout=ABANDON_SECONDS)

    def _record(self, calls: Sequence[_Call]) -> None:
        """Append the results that are there and not yet in the history, in the model's order."""
        for call in calls:
            if call.output is not None and not call.recorded:
                call.recorded = True
                self._messages.append(tool_message(call.id, call.output))


def _all_done(batch: Sequence[_Call]) -> bool:
    return all(call.task is not None and call.task.done() for call in batch)


def _failed(error: BaseException) -> ToolOutput:
    kind = type(error).__name__
    text = json.dumps({"error": str(error) or kind, "error_type": kind}, ensure_ascii=False)
    return ToolOutput(text=text, ok=False, error_type=kind)
