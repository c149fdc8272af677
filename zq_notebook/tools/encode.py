"""A tool's return value as text for the model."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import msgspec

from zq_notebook.text.unicode import well_formed, well_formed_value
from zq_notebook.toolio import ToolOutput

_MAX_OBJECT_CHARS = 2000
_MAX_ERROR_CHARS = 4000


def bounded_str(value: object, limit: int = _MAX_OBJECT_CHARS) -> str:
    """``str(value)``, or its type when that fails, at most ``limit`` characters."""
    try:
        text = str(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose str() raised {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _plain(value: object) -> object:
    """Stands in for what JSON cannot take: a number for a zero-dimensional array scalar, else bounded text."""
    if getattr(value, "shape", None) == () and callable(item := getattr(value, "item", None)):
        scalar = item()
        if isinstance(scalar, (bool, int, float, str)):
            return scalar
    return bounded_str(value)


def _jsonable(value: object, depth: int = 0) -> Any:
    """The slow way, for what msgspec refuses: keys that are no strings, huge integers, cycles, broken text."""
    if depth > 50:
        return bounded_str(type(value).__name__)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {well_formed(bounded_str(key)): _jsonable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_jsonable(item, depth + 1) for item in value]
    plain = _plain(value)
    return well_formed(plain) if isinstance(plain, str) else plain


def as_text(value: object) -> str:
    """Strings as they are, everything else as compact JSON; text that is not valid Unicode is repaired."""
    if isinstance(value, str):
        return well_formed(value)
    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    except Exception:
        # Whatever a value raises while it is looked at, the model gets an answer.
        return json.dumps(_jsonable(value), ensure_ascii=False, separators=(",", ":"), default=bounded_str)


def as_output(value: object) -> ToolOutput:
    """What a tool returned, as a :class:`ToolOutput`. A mapping with a truthy ``error`` counts as a failure."""
    if isinstance(value, ToolOutput):
        value.text = as_text(value.text)
        return value
    if (
        isinstance(value, Mapping)
        and isinstance(value.get("error", None), (str, Mapping, list, int))
        and value["error"]
    ):
        kind = value.get("error_type")
        return ToolOutput(text=as_text(well_formed_value(dict(value))), ok=False, error_type=str(kind or "ToolError"))
    return ToolOutput(text=as_text(value))


def error_output(message: str, error_type: str) -> ToolOutput:
    """The form in which a failure reaches the model (Manual §7.2)."""
    message = bounded_str(well_formed(message), _MAX_ERROR_CHARS)
    return ToolOutput(text=as_text({"error": message, "error_type": error_type}), ok=False, error_type=error_type)


def output_of_exception(error: BaseException) -> ToolOutput:
    """What the model reads about a tool that raised."""
    return error_output(bounded_str(error, _MAX_ERROR_CHARS) or type(error).__name__, type(error).__name__)
