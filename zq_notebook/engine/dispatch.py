"""Running the tool calls of one reply: plan, ask, run, answer in the model's order (Manual §9.1, §12.6)."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from zq_notebook.cancel import CancelToken
from zq_notebook.engine import texts
from zq_notebook.engine.approval import ApprovalOutcome, ApprovalReply, Approver, PermissionRequest
from zq_notebook.engine.clock import timestamp
from zq_notebook.engine.events import (
    EVENT_CLASSES,
    Event,
    PermissionRequired,
    ToolFinished,
    ToolProposed,
    ToolStarted,
)
from zq_notebook.engine.history import parse_arguments, tool_message
from zq_notebook.engine.interrupt import InterruptScope, TurnInterrupted
from zq_notebook.engine.messages import Message, ToolCall
from zq_notebook.engine.ports import PermissionPolicy, ToolTable
from zq_notebook.toolio import ToolContext, ToolOutput

logger = logging.getLogger("zq_notebook.engine")

PREVIEW_CHARS = 1000
# A stopped tool may hand over what it has; after that it is cancelled, and at last left alone.
GRACE_SECONDS = 0.25
ABANDON_SECONDS = 2.0


class ApproverFailed(Exception):
    """The approver raised; ``cause`` is what it raised."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _Call:
    """One proposed call and how far it has come."""

    def __init__(self, call: ToolCall) -> None:
        self.id = call.id
        self.name = call.name
        self.parsed = parse_arguments(call.arguments)
        self.arguments: Mapping[str, Any] = self.parsed or {}
        self.raw = call.arguments
        self.running_since: float | None = None
        self.output: ToolOutput | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def duration_ms(self) -> int | None:
        return None if self.running_since is None else int((time.perf_counter() - self.running_since) * 1000)


class Dispatcher:
    """The calls of one reply. Iterate :meth:`run` for their events; results are appended to ``messages``."""

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
        handlers: Mapping[str, Callable[..., Any]],
        result_dir: Path | None,
        produced_files: list[str],
    ) -> None:
        self._registry = registry
        self._permissions = permissions
        self._approver = approver
        self._messages = messages
        self._task_id = task_id
        self._cancel = cancel
        self._scope = scope
        self._handlers = handlers
        self._result_dir = result_dir
        self._produced_files = produced_files
        self._loop = asyncio.get_running_loop()
        self._events: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._posted = 0
        self._delivered = 0
        self._delivery = asyncio.Event()

    async def run(self, calls: Sequence[ToolCall]) -> AsyncGenerator[Event, None]:
        """Propose every call, then run them batch by batch.

        Raises :class:`TurnInterrupted` when the user stopped, :class:`ApproverFailed` when the approver raised; either
        way every call has its result in the history and its ``tool_finished`` event.
        """
        planned = [_Call(call) for call in calls]
        failure: Exception | None = None
        try:
            for call in planned:
                yield ToolProposed(
                    req_id=call.id, name=call.name, arguments=dict(call.arguments), task_id=self._task_id
                )
            for batch in self._batches(planned):
                try:
                    async with aclosing(self._run_batch(batch)) as events:
                        async for event in events:
                            yield event
                except (TurnInterrupted, ApproverFailed) as error:
                    failure = error
                    break
                self._record(batch)
            if failure is not None:
                for call in planned:
                    if call.output is None:
                        yield self._close_unfinished(call, failure)
        finally:
            await self._end_tasks(planned)
            for call in planned:
                if call.output is None:
                    call.output = ToolOutput(text=texts.INTERRUPTED, ok=False)
            self._record(planned)
        if failure is not None:
            raise failure

    def _batches(self, calls: Sequence[_Call]) -> Iterator[list[_Call]]:
        """Neighbouring low-risk calls together, every other call alone, in the model's order."""
        batch: list[_Call] = []
        for call in calls:
            tool = self._registry.get(call.name)
            if tool is not None and tool.concurrent:
                batch.append(call)
                continue
            if batch:
                yield batch
                batch = []
            yield [call]
        if batch:
            yield batch

    async def _run_batch(self, batch: Sequence[_Call]) -> AsyncGenerator[Event, None]:
        for call in batch:
            call.task = asyncio.create_task(self._run_call(call))
            call.task.add_done_callback(lambda _: self._wake.set())
        while True:
            try:
                await self._scope.wait(lambda: self._next_step(batch))
            except TurnInterrupted:
                await self._stop(batch)
                while self._events:
                    yield self._events.popleft()
                raise
            while self._events:
                yield self._events.popleft()
                self._delivered += 1
                self._delivery.set()
            if all(call.task is not None and call.task.done() for call in batch) and not self._events:
                break
        for call in batch:
            assert call.task is not None
            error = call.task.exception()
            if error is not None:
                raise error

    async def _next_step(self, batch: Sequence[_Call]) -> None:
        """Until there is an event to pass on or a call has ended."""
        if self._events or all(call.task is not None and call.task.done() for call in batch):
            return
        self._wake.clear()
        await self._wake.wait()

    async def _run_call(self, call: _Call) -> None:
        try:
            await self._decide_and_run(call)
        except ApproverFailed:
            raise
        except Exception as error:
            # A permission engine or registry of somebody else's that breaks must not let the call through.
            logger.exception("the call of %s failed outside the tool", call.name)
            self._finish(call, "error", ToolOutput(text=texts.failed(error), ok=False))

    async def _decide_and_run(self, call: _Call) -> None:
        tool = self._registry.get(call.name)
        if tool is None or call.parsed is None:
            # The registry words both errors for the model; nothing runs.
            self._finish(call, "error", await self._registry.call(call.name, call.raw, self._context(call)))
            return
        decision = self._permissions.evaluate(call.name, call.arguments, tool.metadata)
        if decision.needs_user:
            category = str(getattr(tool.metadata, "category", ""))
            await self._deliver(
                PermissionRequired(
                    task_id=self._task_id,
                    req_id=call.id,
                    name=call.name,
                    arguments=call.arguments,
                    reason=decision.reason,
                    category=category,
                )
            )
            request = PermissionRequest(
                tool_name=call.name,
                arguments=call.arguments,
                metadata=tool.metadata,
                reason=decision.reason,
                tool_call_id=call.id,
            )
            reply = await self._ask(request)
            self._remember(call, reply.outcome)
            if reply.outcome is ApprovalOutcome.DENY:
                self._finish(
                    call, "denied", ToolOutput(text=texts.denied_by_user(reply.reason), ok=False), reply.reason
                )
                return
        elif not decision.allowed:
            text = texts.denied_by_permissions(decision.reason)
            self._finish(call, "denied", ToolOutput(text=text, ok=False), decision.reason)
            return
        self._post(ToolStarted(task_id=self._task_id, req_id=call.id, name=call.name, start_time=timestamp()))
        call.running_since = time.perf_counter()
        output = await self._registry.call(call.name, call.arguments, self._context(call))
        status = "interrupted" if self._cancel.is_set() else "ok" if output.ok else "error"
        self._finish(call, status, output)

    async def _ask(self, request: PermissionRequest) -> ApprovalReply:
        try:
            answer = self._approver(request)
            if inspect.isawaitable(answer):
                answer = await answer
            if isinstance(answer, ApprovalReply):
                return answer
            return ApprovalReply(ApprovalOutcome(answer))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise ApproverFailed(error) from error
        except Exception as error:
            raise ApproverFailed(error) from error

    def _remember(self, call: _Call, outcome: ApprovalOutcome) -> None:
        if outcome is ApprovalOutcome.ALWAYS_TOOL:
            self._permissions.allow_tool_for_session(call.name)
        elif outcome is ApprovalOutcome.ALWAYS_COMMAND:
            self._permissions.allow_command_for_session(str(call.arguments.get("command", "")))

    def _context(self, call: _Call) -> ToolContext:
        def emit(event_type: str, /, **fields: Any) -> None:
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
        call.output = output
        self._post(self._finished(call, status, output, reason))

    def _finished(self, call: _Call, status: str, output: ToolOutput, reason: str | None) -> ToolFinished:
        return ToolFinished(
            task_id=self._task_id,
            req_id=call.id,
            name=call.name,
            status=status,
            reason=reason,
            duration=call.duration_ms,
            result_preview=output.text[:PREVIEW_CHARS],
            output=output,
        )

    def _close_unfinished(self, call: _Call, failure: Exception) -> ToolFinished:
        if isinstance(failure, TurnInterrupted):
            status, text = "interrupted", texts.INTERRUPTED
        else:
            status, text = "denied", texts.APPROVAL_FAILED
        call.output = ToolOutput(text=text, ok=False)
        return self._finished(call, status, call.output, None)

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
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=ABANDON_SECONDS)

    def _record(self, calls: Sequence[_Call]) -> None:
        """Append the results that are there and not yet in the history, in the model's order."""
        for call in calls:
            if call.output is not None and call.id not in self._recorded():
                self._messages.append(tool_message(call.id, call.output))

    def _recorded(self) -> set[str]:
        ids: set[str] = set()
        for message in reversed(self._messages):
            if message.get("role") != "tool":
                break
            ids.add(str(message.get("tool_call_id")))
        return ids


def unique_ids(calls: Sequence[ToolCall], prefix: str) -> list[ToolCall]:
    """The calls with an id each: one that is missing or used twice in the reply is replaced."""
    seen: set[str] = set()
    result: list[ToolCall] = []
    for number, call in enumerate(calls):
        call_id = call.id if call.id and call.id not in seen else f"call_{prefix}_{number}"
        seen.add(call_id)
        result.append(call if call_id == call.id else msgspec.structs.replace(call, id=call_id))
    return result
