"""Asking the model for the notes that replace the older part of a conversation (Manual §14.1, §14.3)."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from zq_notebook.cancel import CancelToken
from zq_notebook.engine.clock import new_id, timestamp
from zq_notebook.engine.events import Event, LlmRequest, LlmRetry
from zq_notebook.engine.interrupt import InterruptScope, TurnInterrupted
from zq_notebook.engine.messages import ToolCall, text_of
from zq_notebook.engine.ports import ProviderClient, StreamOptions
from zq_notebook.engine.retry import RetryPolicy, is_transient
from zq_notebook.engine.shrink import is_notes
from zq_notebook.engine.stream import close_stream, open_stream
from zq_notebook.engine.tokens import BYTES_PER_TOKEN, clip_tokens, text_tokens
from zq_notebook.errors import ApiStatusError, ContextOverflowError, StreamError
from zq_notebook.text.truncate import clip_middle

if TYPE_CHECKING:
    from zq_notebook.languages.tables import CompactionTexts

SUMMARY_TOKENS = 3000
DEFAULT_EFFORT = "low"
_SAID_CHARS = 8000
_RESULT_CHARS = 2000
_ARGUMENT_CHARS = 1000


class TurnPlace(msgspec.Struct, frozen=True):
    """Where in which turn something happens, and what ends it early."""

    task_id: str
    iteration: int
    cancel: CancelToken
    scope: InterruptScope


def record_of(messages: Sequence[Mapping[str, Any]], intro: str, limit: int) -> str:
    """The conversation as text in about ``limit`` tokens; long results go first, the middle goes last."""
    for divisor in (1, 4, 16):
        record = "\n\n".join(filter(None, (_entry(message, intro, divisor) for message in messages)))
        tokens = text_tokens(record)
        if tokens <= limit:
            return record
    return clip_middle(record, len(record) * limit // tokens)


def _entry(message: Mapping[str, Any], intro: str, divisor: int) -> str:
    text, role = text_of(message), message.get("role")
    if is_notes(message, intro):
        return text
    if role == "tool":
        return f"[result {message.get('tool_call_id')}]\n{clip_middle(text, _RESULT_CHARS // divisor)}"
    parts = [f"[{role}]\n{clip_middle(text, _SAID_CHARS // divisor)}"] if text else []
    for call in map(ToolCall.of, message.get("tool_calls") or ()):
        parts.append(f"[call {call.id}] {call.name} {clip_middle(call.arguments, _ARGUMENT_CHARS // divisor)}")
    return "\n".join(parts)


def summary_model(model: str) -> str:
    """COMPACTION_MODEL, else ``model``."""
    return os.environ.get("COMPACTION_MODEL", "").strip() or model


def summary_effort() -> str:
    """COMPACTION_REASONING_EFFORT, else ``low``."""
    return os.environ.get("COMPACTION_REASONING_EFFORT", "").strip() or DEFAULT_EFFORT


def refuses_effort(error: Exception) -> bool:
    """Whether a server may have refused a request because of its reasoning effort, as for models that do not reason."""
    return isinstance(error, ApiStatusError) and error.status in (400, 422) and not is_overflow(error)


def is_overflow(error: Exception) -> bool:
    """Whether a request was too large."""
    return isinstance(error, ContextOverflowError)


class SummaryRequest:
    """Asks for one summary. ``text`` is there when :meth:`run` has ended, empty when the model said nothing."""

    def __init__(self, provider: ProviderClient, model: str, texts: CompactionTexts, place: TurnPlace) -> None:
        self._provider = provider
        self._texts = texts
        self._place = place
        self._effort: str | None = summary_effort()
        self.model = summary_model(model)
        self.req_id = new_id()
        self.text = ""

    async def run(self, messages: Sequence[Mapping[str, Any]], limit: int) -> AsyncGenerator[Event, None]:
        """Ask about ``messages``, told in at most ``limit`` tokens: half of that when it is still too much.

        What the network broke is tried again, as every request; what a model that does not reason refused is asked
        again without an effort. Raises TurnInterrupted, or what the provider raised.
        """
        policy, attempt, halved = RetryPolicy.from_env(), 0, False
        while True:
            asked = self._asked(messages, limit)
            self.req_id = new_id()
            opts = self._options()
            yield self._announce(opts, len(asked))
            try:
                self.text = clip_tokens((await self._answer(asked, opts)).strip(), SUMMARY_TOKENS)
                return
            except TurnInterrupted:
                raise
            except Exception as error:
                self._place.scope.check()
                if is_overflow(error) and not halved:
                    limit, halved = limit // 2, True
                    continue
                if self._effort and refuses_effort(error):
                    self._effort = None
                    continue
                if not is_transient(error) or attempt >= policy.max_retries:
                    raise
                attempt += 1
                yield self._retrying(policy, attempt, error)
                if await self._place.cancel.wait_async(policy.wait_ms(attempt) / 1000):
                    raise TurnInterrupted from None

    def _asked(self, messages: Sequence[Mapping[str, Any]], limit: int) -> list[dict[str, Any]]:
        record = record_of(messages, self._texts.summary_intro, limit)
        return [{"role": "system", "content": self._texts.prompt}, {"role": "user", "content": record}]

    def _options(self) -> StreamOptions:
        return StreamOptions(
            req_id=self.req_id,
            log_time=timestamp(),
            task_id=self._place.task_id,
            reasoning_effort=self._effort,
            cancel=self._place.cancel,
        )

    def _announce(self, opts: StreamOptions, count: int) -> LlmRequest:
        return LlmRequest(
            req_id=opts.req_id,
            task_id=opts.task_id,
            log_time=opts.log_time,
            model=self.model,
            msg_count=count,
            tool_count=0,
            compact=True,
        )

    def _retrying(self, policy: RetryPolicy, attempt: int, error: Exception) -> LlmRetry:
        return LlmRetry(
            attempt=attempt,
            max=policy.max_retries,
            reason=str(error) or type(error).__name__,
            wait_ms=policy.wait_ms(attempt),
            iteration=self._place.iteration,
            req_id=self.req_id,
        )

    async def _answer(self, asked: Sequence[Mapping[str, Any]], opts: StreamOptions) -> str:
        """What ``chat`` gives; what the model streams where a provider has no ``chat`` to speak of."""
        params = {"max_tokens": SUMMARY_TOKENS}
        options = {"reasoning_effort": self._effort} if self._effort else None
        wait = self._place.scope.wait
        text = await wait(lambda: self._provider.chat(self.model, asked, options, opts, params))
        return text if text else await self._streamed(asked, opts)

    async def _streamed(self, asked: Sequence[Mapping[str, Any]], opts: StreamOptions) -> str:
        wait = self._place.scope.wait
        stream = await wait(lambda: open_stream(self._provider, self.model, asked, [], opts))
        chunks = stream.__aiter__()
        parts: list[str] = []
        characters, ended = 0, False
        try:
            # The stream has no limit of its own: the reading has.
            while characters <= SUMMARY_TOKENS * BYTES_PER_TOKEN:
                chunk = await wait(chunks.__anext__)
                ended = chunk.finish_reason is not None
                if chunk.content:
                    parts.append(chunk.content)
                    characters += len(chunk.content)
        except StopAsyncIteration:
            if not ended:
                raise StreamError("The summary of the conversation broke off before it was complete.") from None
        finally:
            await close_stream(chunks)
        return "".join(parts)
