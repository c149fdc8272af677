"""One turn from ``turn_start`` to ``turn_end`` (Manual §9.1)."""

from __future__ import annotations

import traceback
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from zq_notebook.cancel import CancelToken
from zq_notebook.engine import history
from zq_notebook.engine.approval import ApproverFailed
from zq_notebook.engine.clock import timestamp
from zq_notebook.engine.compaction import too_large
from zq_notebook.engine.dispatch import Dispatcher
from zq_notebook.engine.events import (
    AssistantMessage,
    ErrorEvent,
    Event,
    Interrupted,
    IterationEnd,
    QueueSteering,
    TurnEnd,
    TurnStart,
)
from zq_notebook.engine.hooks import notify
from zq_notebook.engine.interrupt import InterruptScope, TurnInterrupted
from zq_notebook.engine.messages import Message, ToolCall
from zq_notebook.engine.request import ModelRequest
from zq_notebook.engine.retry import is_retriable
from zq_notebook.engine.summary import TurnPlace
from zq_notebook.errors import AgentError, ContextOverflowError

if TYPE_CHECKING:
    from zq_notebook.engine.turn import TurnEngine

Attachments = Sequence[Mapping[str, Any]] | None


class TurnLoop:
    """Plays one turn on an engine that has been claimed for it."""

    def __init__(self, engine: TurnEngine, task_id: str, cancel: CancelToken) -> None:
        self._engine = engine
        self._task_id = task_id
        self._cancel = cancel
        self._scope = InterruptScope(cancel)
        self._iteration = 0
        self._status = "completed"
        self._produced: list[str] = []
        self._stored = False
        self._request = ModelRequest(engine, task_id, 0, cancel, self._scope)

    def close(self) -> None:
        """Let go of the cancellation token."""
        self._scope.close()

    async def play(self, opening: TurnStart, pending: Sequence[ToolCall] = ()) -> AsyncGenerator[Event, None]:
        """All events of the turn; ``turn_end`` comes last, whatever happened.

        ``pending`` are calls at the end of the history that still want their result (Manual §12.4).
        """
        ended = False
        raise_after: BaseException | None = None
        try:
            yield self._emit(opening)
            try:
                async with aclosing(self._iterations(pending)) as events:
                    async for event in events:
                        yield self._emit(event)
            except TurnInterrupted:
                self._status = "interrupted"
            except ApproverFailed as error:
                self._status, raise_after = "error", error.cause
            except Exception as error:
                self._status, failure = "error", error
                self._engine.retriable = is_retriable(error)
            except BaseException:
                # The consumer left or was cancelled.
                self._cancel.set()
                self._status = "interrupted"
                raise
            if self._status == "interrupted":
                self._keep_partial_reply()
                req_id = self._request.reply.req_id
                yield self._emit(Interrupted(iterations=self._iteration, req_id=req_id, task_id=self._task_id))
            elif self._status == "error":
                yield self._emit(self._error(raise_after or failure))
            self._tidy()
            ended = True
            yield self._emit(self._end())
        finally:
            if not ended:
                # Nobody is there for the events any more; hooks still hear the end.
                self._cancel.set()
                if self._status == "completed":
                    self._status = "interrupted"
                self._keep_partial_reply()
                self._tidy()
                notify(self._engine.hook, self._end())
        if raise_after is not None:
            raise raise_after

    def _emit(self, event: Event) -> Event:
        notify(self._engine.hook, event)
        return event

    def opening(self, text: str, attachments: Attachments, refs: Attachments) -> TurnStart:
        """Put what the user says into the history; the event that announces it."""
        # A process that died in the middle of a call leaves it open; a new turn must not build on that.
        history.answer_pending(self._engine.messages, self._engine.texts.results.interrupted)
        history.strip_inline_data(self._engine.messages, self._engine.texts.compaction.images_removed)
        self._engine.messages.append(history.user_message(text, attachments, refs))
        return TurnStart(
            task_id=self._task_id,
            input=text,
            attachment_count=len(attachments) if attachments else None,
            attachments=[dict(ref) for ref in refs] if refs else None,
        )

    def reopening(self) -> TurnStart:
        """The event that announces a turn which goes on from what the history holds."""
        said = [m["content"] for m in self._engine.messages if m.get("role") == "user"]
        text = said[-1] if said and isinstance(said[-1], str) else ""
        return TurnStart(task_id=self._task_id, input=text)

    async def _iterations(self, pending: Sequence[ToolCall]) -> AsyncGenerator[Event, None]:
        engine = self._engine
        if pending:
            async with aclosing(self._dispatcher().run(pending)) as events:
                async for event in events:
                    yield event
            history.sort_last_results(engine.messages)
        while self._iteration < engine.max_iterations:
            self._iteration += 1
            for event in self._steer():
                yield event
            self._scope.check()
            async with aclosing(self._ask_model(engine.registry.schemas())) as events:
                async for event in events:
                    yield event
            calls = self._request.reply.calls
            if calls:
                async with aclosing(self._dispatcher().run(calls)) as events:
                    async for event in events:
                        yield event
            yield IterationEnd(iteration=self._iteration, task_id=self._task_id)
            self._scope.check()
            if not calls and not engine.steering:
                return
        self._status = "max_iterations_exceeded"
        if engine.finalize_on_max_iterations:
            instruction = engine.texts.notices.finalize.format(limit=engine.max_iterations)
            engine.messages.append(Message(role="user", content=instruction))
            async with aclosing(self._ask_model([], final=True)) as events:
                async for event in events:
                    yield event

    def _steer(self) -> list[Event]:
        events: list[Event] = []
        for item in self._engine.steering.take_all():
            self._engine.messages.append(history.user_message(item.text, item.attachments, item.refs))
            refs = [dict(ref) for ref in item.refs] if item.refs else None
            events.append(QueueSteering(text=item.text, task_id=self._task_id, attachments=refs))
        return events

    async def _ask_model(
        self, tools: Sequence[Mapping[str, Any]], *, final: bool = False
    ) -> AsyncGenerator[Event, None]:
        """One reply; a ``final`` one asks for no tools, whatever the model writes."""
        async with aclosing(self._complete_reply(tools)) as events:
            async for event in events:
                yield event
        reply = self._request.reply
        if final and reply.calls:
            # What only the provider understands may speak of the calls, and must not stay without them.
            reply.calls, reply.extra = [], {}
        self._stored = True
        self._engine.call_ids.update(call.id for call in reply.calls)
        self._engine.messages.append(history.assistant_message(reply.text, reply.calls, reply.extra))
        self._engine.compactor.reported(reply.usage, tools)
        yield AssistantMessage(
            text=reply.text,
            reasoning=reply.reasoning,
            tool_calls=[call.name for call in reply.calls],
            usage=reply.usage.to_dict() if reply.usage is not None else None,
            req_id=reply.req_id,
            task_id=self._task_id,
            log_time=timestamp(),
        )

    async def _complete_reply(self, tools: Sequence[Mapping[str, Any]]) -> AsyncGenerator[Event, None]:
        """The events of one reply, with room made for it where that is due (Manual §14); ``_request`` then has it."""
        compactor = self._engine.compactor
        overflow: ContextOverflowError | None = None
        while True:
            if overflow is not None or compactor.due(tools):
                place = TurnPlace(self._task_id, self._iteration, self._cancel, self._scope)
                async with aclosing(compactor.make_room(place, tools, overflow)) as events:
                    async for event in events:
                        yield event
            request = ModelRequest(self._engine, self._task_id, self._iteration, self._cancel, self._scope)
            self._request, self._stored = request, False
            try:
                async with aclosing(request.stream(tools)) as events:
                    async for event in events:
                        yield event
                return
            except ContextOverflowError as error:
                if overflow is not None:
                    raise too_large(error, helped=True) from error
                overflow = error

    def _dispatcher(self) -> Dispatcher:
        engine = self._engine
        return Dispatcher(
            registry=engine.registry,
            permissions=engine.permissions,
            approver=engine.approver,
            messages=engine.messages,
            task_id=self._task_id,
            cancel=self._cancel,
            scope=self._scope,
            hook=engine.hook,
            handlers=engine.handlers,
            result_dir=engine.tool_result_dir,
            produced_files=self._produced,
            texts=engine.texts.results,
        )

    def _keep_partial_reply(self) -> None:
        """What the user has already read stays in the history, unless the whole reply is there."""
        reply = self._request.reply
        if reply.text and not self._stored:
            self._stored = True
            self._engine.messages.append(Message(role="assistant", content=reply.text))

    def _tidy(self) -> None:
        history.answer_pending(self._engine.messages, self._engine.texts.results.interrupted)
        if not self._engine.retriable:
            # retry() sends the pictures of the failed turn once more.
            history.strip_inline_data(self._engine.messages, self._engine.texts.compaction.images_removed)

    def _error(self, error: BaseException) -> ErrorEvent:
        known = isinstance(error, AgentError)
        return ErrorEvent(
            error=str(error) or type(error).__name__,
            error_type=type(error).__name__,
            retriable=self._engine.retriable,
            iteration=self._iteration,
            req_id=self._request.reply.req_id,
            log_time=timestamp(),
            task_id=self._task_id,
            stack=None if known else "".join(traceback.format_exception(error)),
        )

    def _end(self) -> TurnEnd:
        return TurnEnd(
            status=self._status,
            iterations=self._iteration,
            produced_files=list(self._produced),
            task_id=self._task_id,
        )
