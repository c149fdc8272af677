"""Making room in a long conversation before the model's window is full (Manual §14).

Checked before every request. At the soft threshold old tool results give way to short notes, without asking the model.
At the hard threshold, or when the server says that a request is too large, the older part of the conversation is
replaced by a summary; where none can be had, it is left out.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import msgspec

from zq_notebook.engine import shrink
from zq_notebook.engine.clock import new_id
from zq_notebook.engine.events import Compacted, Compacting, Event
from zq_notebook.engine.interrupt import TurnInterrupted
from zq_notebook.engine.limits import DEFAULT_CONTEXT_WINDOW, CompactionOptions, Limits
from zq_notebook.engine.messages import Message, TokenUsage
from zq_notebook.engine.summary import SUMMARY_TOKENS, SummaryRequest, TurnPlace, summary_model
from zq_notebook.engine.tokens import Count, TokenMeter, ToolTokens, messages_tokens, text_tokens, tokens_after
from zq_notebook.errors import ContextOverflowError
from zq_notebook.text import logs

if TYPE_CHECKING:
    from zq_notebook.engine.turn import TurnEngine
    from zq_notebook.languages.tables import CompactionTexts

logger = logs.logger("zq_notebook.engine")

KEEP_SHARE = 0.25
# Every change of old messages costs the server's cache of the request's beginning: only where it saves this much.
LEAST_SAVING = 0.1
SMALLEST_WINDOW = 8192
PREVIEW_CHARS = 300
LEAST_RECORD_TOKENS = 500

Tools = Sequence[Mapping[str, Any]]


class CompactionState(msgspec.Struct, frozen=True, kw_only=True):
    """What compaction knows and has done, as of the last request (``engine.compaction_state``).

    tokens: what the next request had, in tokens; ``estimated`` when no server reported anything to go by.
    context_window, threshold_tokens, soft_threshold_tokens: in tokens; ``None`` while the request is so small that
        they were not looked up.
    evictions: how often old tool results were evicted. compactions: how often older messages were replaced.
    last_method, last_trigger: ``summarized`` or ``trimmed``; ``threshold`` or ``overflow``.
    """

    tokens: int = 0
    estimated: bool = True
    context_window: int | None = None
    threshold_tokens: int | None = None
    soft_threshold_tokens: int | None = None
    evictions: int = 0
    compactions: int = 0
    last_method: str | None = None
    last_trigger: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The state as plain values, as it stands in a saved session (Manual §11.3)."""
        return msgspec.structs.asdict(self)


class Compactor:
    """Compaction for one engine. Options are read from the engine at each request."""

    def __init__(self, engine: TurnEngine, window_of: Callable[[str], int | None] | None = None) -> None:
        self._engine = engine
        self._window_of = window_of
        self._windows: dict[str, int] = {}
        self._meter = TokenMeter()
        self._tool_tokens = ToolTokens()
        self._count = Count(0, 0, True)
        # What the conversation had after it was compacted: without anything new, the same again would not help.
        self._floor = 0
        self.state = CompactionState()
        self._options()

    def due(self, tools: Tools) -> bool:
        """Whether room should be made before the next request."""
        count = self._count = self._measure(tools)
        options = self._options()
        if options.context_window is None and count.total < options.limits(SMALLEST_WINDOW).soft:
            # Looking a model up reads a price table, which the first answer should not have to wait for.
            self._note(tokens=count.total, estimated=count.estimated)
            return False
        limits = self._limits()
        self._note(
            tokens=count.total,
            estimated=count.estimated,
            context_window=limits.window,
            threshold_tokens=limits.hard,
            soft_threshold_tokens=limits.soft,
        )
        return count.total >= limits.soft

    def reported(self, usage: TokenUsage | None, tools: Tools) -> None:
        """The server's count for the request whose reply has just become part of the history."""
        if usage is None or not usage.prompt_tokens:
            return
        messages = self._engine.messages
        tokens = tokens_after(usage, bool(messages[-1].keys() - {"role", "content", "tool_calls"}))
        fixed, conversation = self._estimates(tools)
        self._meter.report(tokens, fixed, conversation)

    async def make_room(
        self, place: TurnPlace, tools: Tools, overflow: ContextOverflowError | None = None
    ) -> AsyncGenerator[Event, None]:
        """Compact as far as it is due; with ``overflow``, the server's complaint, in any case.

        Raises TurnInterrupted, and ContextOverflowError when ``overflow`` cannot be helped.
        """
        if overflow is not None:
            self._count = self._measure(tools)
            parts = self._split(tools)
            if not parts.dropped and not self._oversized(self._keep_tokens(tools)):
                raise too_large(overflow, helped=False) from overflow
            async with aclosing(self._compact("overflow", parts, place, tools)) as events:
                async for event in events:
                    yield event
        elif self._count.total >= self._limits().hard and self._worthwhile(parts := self._split(tools), tools):
            async with aclosing(self._compact("threshold", parts, place, tools)) as events:
                async for event in events:
                    yield event
        elif self._evict(tools):
            count = len(self._engine.messages)
            yield Compacted(
                req_id=new_id(), task_id=place.task_id, method="trimmed", messages_before=count, messages_after=count
            )

    @property
    def _texts(self) -> CompactionTexts:
        return self._engine.texts.compaction

    # Measuring

    def _options(self) -> CompactionOptions:
        engine = self._engine
        return CompactionOptions(
            context_window=engine.context_window,
            threshold_pct=engine.threshold_pct,
            soft_threshold_pct=engine.soft_threshold_pct,
            cap_tokens=engine.cap_tokens,
        )

    def _limits(self) -> Limits:
        return self._options().limits(self._engine.context_window or self._window(self._engine.model))

    def _window(self, model: str) -> int:
        """The window of ``model`` as it was looked up, in tokens."""
        if model not in self._windows:
            found = None
            try:
                found = self._window_of(model) if self._window_of is not None else None
            except Exception:
                logger.info("the context window of %s could not be looked up", model, exc_info=True)
            self._windows[model] = found or DEFAULT_CONTEXT_WINDOW
        return self._windows[model]

    def _estimates(self, tools: Tools) -> tuple[int, int]:
        """The estimated tokens of the fixed part (system prompt and tools) and of the conversation."""
        messages = self._engine.messages
        prompt = messages_tokens(messages[: shrink.head_length(messages)])
        conversation = messages_tokens(messages) - prompt
        return prompt + self._tool_tokens.count(tools), conversation

    def _measure(self, tools: Tools) -> Count:
        return self._meter.count(*self._estimates(tools))

    def _keep_tokens(self, tools: Tools) -> float:
        """A quarter of the conversation, or of what may be in it, in estimated tokens."""
        _, conversation = self._estimates(tools)
        return KEEP_SHARE * conversation * min(1.0, self._limits().hard / max(self._count.total, 1))

    # Making room

    def _split(self, tools: Tools) -> shrink.Split:
        return shrink.split(self._engine.messages, self._keep_tokens(tools), self._texts.summary_intro)

    def _worthwhile(self, parts: shrink.Split, tools: Tools) -> bool:
        """Whether a summary would bring the request below the threshold, and there is something new to summarise."""
        fixed, conversation = self._estimates(tools)
        dropped = parts.dropped_tokens(self._engine.messages)
        if dropped < LEAST_SAVING * conversation or conversation <= self._floor * (1 + LEAST_SAVING):
            return False
        after = parts.remaining_tokens(self._engine.messages) + min(SUMMARY_TOKENS, dropped // 4)
        return self._meter.count(fixed, after).total < self._limits().hard

    async def _compact(
        self, trigger: str, parts: shrink.Split, place: TurnPlace, tools: Tools
    ) -> AsyncGenerator[Event, None]:
        engine, limits = self._engine, self._limits()
        messages, keep_tokens = engine.messages, self._keep_tokens(tools)
        before = len(messages)
        yield Compacting(
            task_id=place.task_id,
            trigger=trigger,
            tokens=self._count.total,
            estimated=self._count.estimated,
            context_window=limits.window,
            threshold_pct=engine.threshold_pct,
            threshold_tokens=limits.hard,
            outbound_messages=before,
        )
        request = SummaryRequest(engine.provider, engine.model, self._texts, place)
        if parts.dropped:
            async with aclosing(self._summarize(request, parts, trigger)) as events:
                async for event in events:
                    yield event
        old, notes = list(messages), None
        if request.text:
            notes = Message(role="user", content=f"{self._texts.summary_intro}\n\n{request.text}")
        elif parts.dropped:
            parts = shrink.from_whole_exchange(messages, parts)
        messages[:] = shrink.rebuilt(messages, parts, notes)
        if trigger == "overflow":
            shrink.replace(messages, self._oversized(keep_tokens))
        _, self._floor = self._estimates(tools)
        self._note(
            tokens=self._measure(tools).total,
            compactions=self.state.compactions + 1,
            last_method="summarized" if notes else "trimmed",
            last_trigger=trigger,
        )
        yield self._compacted(request, parts, place, old)

    async def _summarize(
        self, request: SummaryRequest, parts: shrink.Split, trigger: str
    ) -> AsyncGenerator[Event, None]:
        """Ask for the summary; ``request.text`` stays empty when there is none to be had."""
        messages = self._engine.messages[parts.head : parts.cut]
        try:
            async with aclosing(request.run(messages, self._record_tokens(trigger))) as events:
                async for event in events:
                    yield event
        except TurnInterrupted:
            raise
        except Exception as error:
            # One line: a notebook shows warnings in the cell.
            logger.warning(
                "no summary could be had, so the oldest part of the conversation is left out: %s: %s",
                type(error).__name__,
                error,
            )

    def _record_tokens(self, trigger: str) -> int:
        """How long the record may be that the summary is made of, in tokens."""
        model = summary_model(self._engine.model)
        window = self._engine.context_window if model == self._engine.model else None
        room = (window or self._window(model)) - SUMMARY_TOKENS - text_tokens(self._texts.prompt)
        # After an overflow the true window is unknown: smaller than this request, which is all that can be said.
        known = self._count.total // 2 if trigger == "overflow" else self._count.total
        return max(min(int(room * 0.9), known), LEAST_RECORD_TOKENS)

    def _compacted(
        self, request: SummaryRequest, parts: shrink.Split, place: TurnPlace, old: Sequence[Message]
    ) -> Compacted:
        messages, intro = self._engine.messages, self._texts.summary_intro
        summary = request.text or None
        kept = shrink.said_by_user(messages, intro)
        return Compacted(
            req_id=request.req_id,
            task_id=place.task_id,
            method="summarized" if summary else "trimmed",
            messages_before=len(old),
            messages_after=len(messages),
            boundary_index=parts.cut if parts.dropped else None,
            model=request.model if summary else None,
            summary_preview=summary[:PREVIEW_CHARS] if summary else None,
            kept_user_messages=kept,
            dropped_user_messages=shrink.said_by_user(old, intro) - kept,
        )

    def _oversized(self, keep_tokens: float) -> dict[int, Message]:
        """Results of the newest calls that are too much by themselves, shortened."""
        messages = self._engine.messages
        return shrink.clip_results(messages, shrink.tail_start(messages, keep_tokens), keep_tokens)

    def _evict(self, tools: Tools) -> bool:
        """Evict repeated reads, and old tool results where that is not enough; false when it would save too little."""
        messages = self._engine.messages
        fixed, conversation = self._estimates(tools)
        cut = shrink.tail_start(messages, self._keep_tokens(tools))
        elide, dedup = _enabled("COMPACTION_ELIDE"), _enabled("COMPACTION_DEDUP")
        found = shrink.evictions(messages, cut, self._texts, elide=False, dedup=dedup)
        after = self._meter.count(fixed, conversation - shrink.saved_tokens(messages, found)).total
        if elide and after > (1 - LEAST_SAVING) * self._limits().soft:
            found = shrink.evictions(messages, cut, self._texts, elide=True, dedup=dedup)
        if not found or shrink.saved_tokens(messages, found) < LEAST_SAVING * conversation:
            return False
        shrink.replace(messages, found)
        self._note(
            tokens=self._measure(tools).total,
            evictions=self.state.evictions + 1,
            last_method="trimmed",
            last_trigger="threshold",
        )
        return True

    def _note(self, **changes: Any) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)


def too_large(error: ContextOverflowError, *, helped: bool) -> ContextOverflowError:
    """The error for a request that stays too large; ``retry()`` may still help, with another model for example."""
    done = (
        "The older part of this conversation has already been left out to make room."
        if helped
        else "There is nothing older in this conversation that could be left out."
    )
    return ContextOverflowError(
        f"{error} {done} Send a shorter message or smaller files, then try again.",
        status=error.status,
        code=error.code,
        retriable=True,
    )


def _enabled(variable: str) -> bool:
    return os.environ.get(variable, "").strip() != "0"
