"""Instructions that the user adds while a turn runs (Manual §12.5)."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class Steering(msgspec.Struct, frozen=True):
    """One queued instruction."""

    text: str
    attachments: Sequence[Mapping[str, Any]] | None = None
    refs: Sequence[Mapping[str, Any]] | None = None


class SteeringQueue:
    """Filled from any thread, emptied by the turn between two iterations."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: list[Steering] = []

    def __len__(self) -> int:
        return len(self._queue)

    def add(
        self,
        text: str,
        attachments: Sequence[Mapping[str, Any]] | None,
        refs: Sequence[Mapping[str, Any]] | None,
    ) -> None:
        """Queue one instruction."""
        with self._lock:
            self._queue.append(Steering(text, attachments, refs))

    def remove(self, text: str) -> bool:
        """Take the first instruction with this text out; false when there is none."""
        with self._lock:
            for item in self._queue:
                if item.text == text:
                    self._queue.remove(item)
                    return True
        return False

    def take_all(self) -> list[Steering]:
        """All queued instructions, in order; the queue is empty afterwards."""
        with self._lock:
            queue, self._queue = self._queue, []
        return queue
