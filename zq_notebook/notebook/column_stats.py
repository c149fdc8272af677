"""One line of figures about a column, whatever it holds."""

from __future__ import annotations

import collections
from typing import Any

from zq_notebook.notebook.safe_access import class_module, class_name, count_types, full_name, is_genuine, one_of
from zq_notebook.notebook.safe_repr import preview

_HASHABLE = (str, int, float, bool, bytes, type(None))
_MAX_TEXT = 200  # a longer text is counted, not compared
_MAX_OBJECTS = 5_000


def number(value: Any) -> str:
    """A figure in few characters."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)[:40]


def array_figures(values: Any) -> str:
    """Minimum, mean, maximum … of a NumPy array of plain numbers, booleans or times; nulls are left aside."""
    import numpy as np

    kind = values.dtype.kind
    if values.size == 0:
        return "empty"
    if kind == "b":
        return f"true {int(values.sum()):,} of {values.size:,}"
    if kind in "mM":
        known = values[~np.isnat(values)]
        return f"min {known.min()}, max {known.max()}" if known.size else "all null"
    if kind == "c":
        return ""
    if kind == "f":
        values = values[~np.isnan(values)]
        if not values.size:
            return "all NaN"
    finite = values[np.isfinite(values)] if kind == "f" else values
    infinite = values.size - finite.size
    if not finite.size:
        return f"{infinite:,} infinite"
    low, middle, high = finite.min(), np.median(finite), finite.max()
    wide = finite.astype(np.float64)
    text = (
        f"min {number(low.item())}, median {number(float(middle))}, mean {number(float(wide.mean()))}, "
        f"max {number(high.item())}, std {number(float(wide.std()))}"
    )
    return text + (f", {infinite:,} infinite" if infinite else "")


def object_figures(values: list[Any]) -> str:
    """What a list of any objects holds: the commonest values when they are plain, else the types."""
    looked = values[:_MAX_OBJECTS] if len(values) <= _MAX_OBJECTS else values[:: len(values) // _MAX_OBJECTS + 1]
    types = count_types(looked)
    foreign = [kind for kind, _ in types if not one_of(kind, _HASHABLE) and not _is_scalar(kind)]
    if foreign or len(types) > 3:
        named = ", ".join(f"{full_name(kind)} {count:,}" for kind, count in types[:6])
        return f"types: {named}"
    long = sum(1 for value in looked if isinstance(value, str) and len(value) > _MAX_TEXT)
    plain = [value for value in looked if not (isinstance(value, (str, bytes)) and len(value) > _MAX_TEXT)]
    counts = collections.Counter(plain)
    distinct = len(counts)
    if long and not plain:
        return f"{long:,} texts longer than {_MAX_TEXT} characters"
    text = f"{distinct:,} distinct" if distinct < len(plain) or not plain else "all distinct"
    common = [(value, count) for value, count in counts.most_common(3) if count > 1]
    if common:
        text += ": " + ", ".join(f"{preview(value, 30)} {count:,}" for value, count in common)
    elif plain:
        text += ": " + ", ".join(preview(value, 30) for value in plain[:3])
    return text + (f"; {long:,} texts longer than {_MAX_TEXT} characters" if long else "")


def _is_scalar(kind: type) -> bool:
    root = class_module(kind).partition(".")[0]
    if not is_genuine(kind):
        return False
    if root in ("datetime", "decimal"):
        return True
    return root == "pandas" and class_name(kind) in (
        "Timestamp",
        "Timedelta",
        "Period",
        "Interval",
        "NaTType",
        "NAType",
    )
