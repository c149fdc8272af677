"""One reply of the model: stream it, retry what the network broke, never take a cut stream for an answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from zq_notebook.cancel import CancelToken
from zq_notebook.engine.clock import new_id, timestamp
from zq_notebook.engine.events import AssistantDelta, Event, LlmRequest, LlmRetry, ReasoningDelta
from zq_notebook.engine.history import unique_ids
from zq_notebook.engine.interrupt import InterruptScope, TurnInterrupted, UnexpectedCancel
from zq_notebook.engine.messages import StreamChunk, TokenUsage, ToolCall
from zq_notebook.engine.ports import StreamOptions
from zq_notebook.engine.retry import RetryPolicy, is_transient
from zq_notebook.engine.stream import close_stream, open_stream
from zq_notebook.errors import StreamError

if TYPE_CHECKING:
    from zq_notebook.engine.turn import TurnEngine


class Reply:
    """What has arrived of one reply so far."""

    def __init__(self, req_id: str) -> None:
        self.req_id = req_id
        self.log_time = timestamp()
        self.text_parts: list[str] = []
        self.reasoning_parts: list[str] = []
        self.calls: list[ToolCall] = []
        self.usage: TokenUsage | None = None
        self.finish_reason: str | None = None
        self.extra: dict[str, Any] = {}
        self.ended = False

    @property
    def text(self) -> str:
        return "".join(self.text_parts)

    @property
    def reasoning(self) -> str:
        return "".join(self.reasoning_parts)

    def take(self, chunk: StreamChunk) -> None:
        """Note everything in ``chunk`` but its deltas."""
        if chunk.usage is not None:
            self.usage = chunk.usage
        if chunk.tool_calls:
            self.calls = [ToolCall.of(call) for call in chunk.tool_calls]
        if chunk.finish_reason is not None:
            self.finish_reason = chunk.finish_reason
        if chunk.extra:
            self.extra.update(chunk.extra)
        if chunk.tool_calls or chunk.finish_reason is not None:
            self.ended = True
        elif chunk.content or chunk.reasoning:
            # More came after what looked like the end. A late count of tokens does not.
            self.ended = False


class ModelRequest:
    """Asks the model once, again where the network failed. ``reply`` is complete when :meth:`stream` has ended."""

    def __init__(self, engine: TurnEngine, task_id: str, iteration: int, cancel: CancelToken, scope: InterruptScope):
        self._engine = engine
        self._task_id = task_id
        self._iteration = iteration
        self._cancel = cancel
        self._scope = scope
        self.reply = Reply(new_id())

    async def stream(self, tools: Sequence[Mapping[str, Any]]) -> AsyncGenerator[Event, None]:
        """The events of one reply. Raises what the provider raised once retries are used up."""
        policy = RetryPolicy.from_env()
        attempt = 0
        while True:
            self.reply = Reply(new_id())
            yield LlmRequest(
                req_id=self.reply.req_id,
                task_id=self._task_id,
                log_time=self.reply.log_time,
                model=self._engine.model,
                msg_count=len(self._engine.messages),
                tool_count=len(tools),
            )
            try:
                async with aclosing(self._attempt(tools)) as events:
                    async for event in events:
                        yield event
                return
            except Exception as error:
                if self._cancel.is_set():
                    # A provider may end or break its stream on its own when told to stop.
                    raise TurnInterrupted from error
                if not is_transient(error) or attempt >= policy.max_retries:
                    raise
                attempt += 1
                wait_ms = policy.wait_ms(attempt)
                yield LlmRetry(
                    attempt=attempt,
                    max=policy.max_retries,
                    reason=str(error) or type(error).__name__,
                    wait_ms=wait_ms,
                    iteration=self._iteration,
                    req_id=self.reply.req_id,
                )
                if await self._cancel.wait_async(wait_ms / 1000):
                    raise TurnInterrupted from None

    async def _attempt(self, tools: Sequence[Mapping[str, Any]]) -> AsyncGenerator[Event, None]:
        reply, task_id, wait = self.reply, self._task_id, self._scope.wait
        opts = StreamOptions(
            req_id=reply.req_id,
            log_time=reply.log_time,
            task_id=task_id,
            reasoning_effort=self._engine.reasoning_effort,
            cancel=self._cancel,
        )
        engine = self._engine
        stream = await wait(lambda: open_stream(engine.provider, engine.model, engine.messages, tools, opts))
        chunks = stream.__aiter__()
        step = chunks.__anext__
        try:
            while True:
                try:
                    chunk = await wait(step)
                except StopAsyncIteration:
                    break
                if chunk.reasoning:
                    reply.reasoning_parts.append(chunk.reasoning)
                    yield ReasoningDelta(text=chunk.reasoning, req_id=reply.req_id, task_id=task_id)
                if chunk.content:
                    reply.text_parts.append(chunk.content)
                    yield AssistantDelta(text=chunk.content, req_id=reply.req_id, task_id=task_id)
                reply.take(chunk)
        except UnexpectedCancel:
            raise StreamError(
                "The model's stream was cancelled from within, before the answer was complete. Try again; if it "
                "happens every time, look at the provider's timeouts."
            ) from None
        finally:
            await close_stream(chunks)
        if not reply.ended:
            raise StreamError(
                "The model's answer broke off before it was complete (no finish reason came). "
                "Nothing of it was kept; try again."
            )
        reply.calls = unique_ids(reply.calls, self._engine.call_ids)
