"""When history is compacted: the window, the two thresholds, and where they can be set (Manual §6.2, §14.1, §14.3)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import msgspec

from zq_notebook.errors import UsageError

DEFAULT_CONTEXT_WINDOW = 128_000
DEFAULT_THRESHOLD_PCT = 0.8
SOFT_SHARE = 0.75

T = TypeVar("T", int, float)


class Limits(msgspec.Struct, frozen=True):
    """In tokens: the model's ``window``, the ``hard`` threshold (summary) and the ``soft`` one (old tool results)."""

    window: int
    hard: int
    soft: int


class CompactionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The four options of an engine.

    context_window: the model's window in tokens; looked up by the model's name when ``None``.
    threshold_pct: share of the window at which history is summarised, above 0, at most 1.
    soft_threshold_pct: share of the window at which old tool results are evicted; by default 75 % of the above.
    cap_tokens: absolute upper limit of the hard threshold, tokens; the soft one shrinks with it.

    Raises UsageError, when made, for values that cannot be.
    """

    context_window: int | None = None
    threshold_pct: float = DEFAULT_THRESHOLD_PCT
    soft_threshold_pct: float | None = None
    cap_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in ("threshold_pct", "soft_threshold_pct"):
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                raise UsageError(f"{name} is a share of the context window, above 0 and at most 1 (0.8 is 80 %).")
        for name in ("context_window", "cap_tokens"):
            tokens = getattr(self, name)
            if tokens is not None and tokens < 1:
                raise UsageError(f"{name} is a number of tokens, at least 1; leave it out for the default.")

    def limits(self, window: int) -> Limits:
        """The thresholds in tokens for a model with this ``window``."""
        hard = int(window * self.threshold_pct)
        if self.cap_tokens is not None:
            hard = min(hard, self.cap_tokens)
        soft_share = SOFT_SHARE
        if self.soft_threshold_pct is not None:
            soft_share = min(1.0, self.soft_threshold_pct / self.threshold_pct)
        return Limits(window=window, hard=hard, soft=int(hard * soft_share))

    @classmethod
    def from_env(
        cls,
        context_window: int | None = None,
        threshold_pct: float | None = None,
        soft_threshold_pct: float | None = None,
        cap_tokens: int | None = None,
    ) -> CompactionOptions:
        """What was given; for the rest CONTEXT_WINDOW, COMPACTION_THRESHOLD_PCT, COMPACTION_SOFT_THRESHOLD_PCT and
        COMPACTION_CAP_TOKENS, then the defaults (Manual §20.2). Raises UsageError for values that cannot be."""
        if threshold_pct is None:
            threshold_pct = _number("COMPACTION_THRESHOLD_PCT", float) or DEFAULT_THRESHOLD_PCT
        if soft_threshold_pct is None:
            soft_threshold_pct = _number("COMPACTION_SOFT_THRESHOLD_PCT", float)
        return cls(
            context_window=context_window or _number("CONTEXT_WINDOW", int),
            threshold_pct=threshold_pct,
            soft_threshold_pct=soft_threshold_pct,
            cap_tokens=cap_tokens or _number("COMPACTION_CAP_TOKENS", int),
        )


def _number(variable: str, kind: Callable[[str], T]) -> T | None:
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"{variable} is {text!r}, which is not a number. Correct it or remove it.") from None
