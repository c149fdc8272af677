"""Text that every encoder accepts."""

from __future__ import annotations

from typing import Any


def well_formed(text: str) -> str:
    """``text`` with lone surrogates replaced, so that UTF-8 can hold it; a surrogate pair becomes its character."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def well_formed_value(value: Any) -> Any:
    """The same for every string inside a JSON-like value (dicts, lists, tuples, strings)."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {well_formed_value(k): well_formed_value(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [well_formed_value(v) for v in value]
    return value
