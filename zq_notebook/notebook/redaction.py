"""Keeping keys out of what a cell shows and what the notebook keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import cast

import msgspec

from zq_notebook.engine.events import AssistantDelta, Event, EventType, ReasoningDelta
from zq_notebook.text.redact import Redactor, StreamRedactor, shared

Delta = AssistantDelta | ReasoningDelta

# Compared with other events, never shown.
_IDENTIFIERS = frozenset({"req_id", "task_id", "log_time", "start_time"})


class EventRedactor:
    """Masks keys in the events of one turn, in batches; deltas that follow each other become one.

    The beginning of something that may turn out to be a key is held back until the next batch or the end of the reply.
    """

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor or shared()
        self._streams: dict[EventType, StreamRedactor] = {}
        self._last: dict[EventType, Delta] = {}

    def mask(self, events: Iterable[Event]) -> list[Event]:
        """The events to show in place of ``events``."""
        shown: list[Event] = []
        for kind, group in groupby(events, key=_delta_key):
            if kind is not None:
                shown.extend(self._delta(cast("list[Delta]", list(group))))
                continue
            for event in group:
                if event.type is EventType.LLM_RETRY:
                    # The partial reply is thrown away, what was held back of it too.
                    self._streams.clear()
                else:
                    shown.extend(self._end_streams())
                shown.append(self._other(event))
        return shown

    def _delta(self, deltas: list[Delta]) -> Iterator[Event]:
        first = deltas[0]
        stream = self._streams.setdefault(first.type, StreamRedactor(self._redactor))
        self._last[first.type] = first
        text = stream.feed("".join(delta.text for delta in deltas))
        if text:
            yield msgspec.structs.replace(first, text=text)

    def _end_streams(self) -> Iterator[Event]:
        for kind, stream in self._streams.items():
            text = stream.flush()
            if text:
                yield msgspec.structs.replace(self._last[kind], text=text)
        self._streams.clear()

    def _other(self, event: Event) -> Event:
        """``event`` with every text in it masked; a tool's output was masked when it was made."""
        masked = {
            name: self._redactor.redact_data(value)
            for name in event.__struct_fields__
            if isinstance(value := getattr(event, name), (str, dict, list)) and value and name not in _IDENTIFIERS
        }
        return msgspec.structs.replace(event, **masked)


def _delta_key(event: Event) -> tuple[EventType, str] | None:
    return (event.type, event.req_id) if isinstance(event, (AssistantDelta, ReasoningDelta)) else None
