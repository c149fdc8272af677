"""Which rows to look at when there are too many."""

from __future__ import annotations

from typing import Any

#: More values than this are not looked at one by one.
MAX_CELLS = 500_000
SAMPLE_ROWS = 20_000
MIN_ROWS = 500


def rows_to_take(rows: int, columns: int) -> int:
    """How many of ``rows`` rows to look at, so that the cells in them stay affordable."""
    if rows * max(columns, 1) <= MAX_CELLS:
        return rows
    return min(rows, max(MIN_ROWS, min(SAMPLE_ROWS, MAX_CELLS // max(columns, 1))))


def positions(rows: int, wanted: int) -> Any:
    """``wanted`` row numbers, one at random from each of as many equal stretches, the same at every call.

    Not every n-th row: data with a rhythm (hours, weekdays) would show only one beat of it.
    """
    import numpy as np

    offsets = np.random.default_rng(0).random(wanted)
    return ((np.arange(wanted) + offsets) * (rows / wanted)).astype(np.int64).clip(0, rows - 1)
