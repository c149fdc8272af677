"""``list_variables``: what there is in the kernel, one line each."""

from __future__ import annotations

import fnmatch
import sys
import types
from collections import deque
from typing import Any

import msgspec

from zq_notebook.notebook.namespace import user_variables
from zq_notebook.notebook.safe_access import class_name, full_name, is_a, isinstance_of, module_dict, one_of
from zq_notebook.notebook.safe_repr import hides, preview
from zq_notebook.toolio import ToolOutput

_CODE = (types.FunctionType, types.BuiltinFunctionType, type)
_PLAIN: tuple[Any, ...] = (str, bytes, bytearray, list, tuple, dict, set, frozenset, deque)
_MAX_CHARS = 24_000


class Brief(msgspec.Struct, frozen=True):
    """A variable in a line: ``size`` is in bytes, the object's own without what it refers to, where it is known."""

    kind: str
    shape: str
    size: int | None
    preview: str


def brief(value: Any, name: str = "") -> Brief:
    """Type, shape or length, size and preview, all without running code of the object's class."""
    shown = "…hidden: the name suggests a secret…" if hides(name, value) else preview(value, 80)
    return Brief(full_name(type(value)), shape_of(value), _size(value), shown)


def shape_of(value: Any) -> str:
    """``48210 × 9`` for tables and arrays, a length for containers, empty for the rest."""
    if is_a(value, "pandas") or is_a(value, "numpy") or is_a(value, "polars", "DataFrame", "Series"):
        shape = getattr(value, "shape", None)
        return " × ".join(map(str, shape)) if isinstance(shape, tuple) else ""
    if is_a(value, "pyarrow", "Table", "RecordBatch"):
        return f"{value.num_rows} × {value.num_columns}"
    for base in _PLAIN:
        if isinstance_of(value, base):
            return str(base.__len__(value))
    return ""


def _size(value: Any) -> int | None:
    if is_a(value, "pandas", "DataFrame"):
        return int(value.memory_usage(deep=False).sum())
    if is_a(value, "pandas", "Series") or is_a(value, "numpy") or is_a(value, "pyarrow", "Table", "RecordBatch"):
        nbytes = getattr(value, "nbytes", None)
        return nbytes if isinstance(nbytes, int) else None
    if one_of(type(value), (*_PLAIN, int, float)):
        return sys.getsizeof(value)
    return None


def list_variables(shell: Any, wanted: str, limit: int) -> ToolOutput:
    """The tool: at most ``limit`` variables whose name or type matches ``wanted``."""
    variables = user_variables(shell)
    modules = [_module_line(name, value) for name, value in variables.items() if isinstance_of(value, types.ModuleType)]
    rows: list[tuple[str, str, str, str, str]] = []
    matching = 0
    for name, value in variables.items():
        if isinstance_of(value, types.ModuleType) or not _matches(wanted, name, full_name(type(value))):
            continue
        matching += 1
        if len(rows) < limit:
            rows.append(_row(name, value))
    rows.sort(key=lambda row: row[1] in ("function", "class"))
    text = _as_table(rows)
    if matching > len(rows):
        text += f"\n… {matching - len(rows):,} more; use filter or limit"
    if modules and not wanted:
        text += f"\nmodules: {', '.join(modules[:60])}" + (" …" if len(modules) > 60 else "")
    if not rows:
        text = f"No variable matches {wanted!r}." if wanted else "The user has defined no variables yet." + text
    count = f"{matching:,} variable{'' if matching == 1 else 's'}"
    return ToolOutput(text=text, summary=count, display={"text/plain": text})


def _matches(wanted: str, name: str, kind: str) -> bool:
    if not wanted:
        return True
    pattern = wanted.lower()
    if any(sign in pattern for sign in "*?["):
        return fnmatch.fnmatchcase(name.lower(), pattern) or fnmatch.fnmatchcase(kind.lower(), pattern)
    return pattern in name.lower() or pattern in kind.lower()


def _row(name: str, value: Any) -> tuple[str, str, str, str, str]:
    if isinstance_of(value, _CODE):
        from zq_notebook.notebook.inspect_objects import inspect_code

        found = inspect_code(value)
        first = found.text.partition("\n")[0] if found else ""
        return name, "class" if isinstance_of(value, type) else "function", "", "", first[:120]
    seen = brief(value, name)
    return name, seen.kind, seen.shape, "" if seen.size is None else _size_text(seen.size), seen.preview


def _size_text(size: int) -> str:
    return f"{size} B" if size < 1000 else f"{size / 1000:.1f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"


def _module_line(name: str, module: Any) -> str:
    real = module_dict(module).get("__name__")
    return name if real == name or type(real) is not str else f"{name} ({real})"


def _as_table(rows: list[tuple[str, str, str, str, str]]) -> str:
    lines = ["name | type | shape or length | size | preview"]
    size = 0
    for row in rows:
        line = " | ".join(row)
        size += len(line) + 1
        if size > _MAX_CHARS:
            lines.append(f"… {len(rows) - len(lines) + 1:,} more did not fit; use filter")
            break
        lines.append(line)
    return "\n".join(lines) if rows else ""


def describe_briefly(value: Any) -> str:
    """A few words for the footer of a cell: ``DataFrame 48210 × 9``."""
    kind = class_name(type(value))
    if isinstance_of(value, (bool, int, float, str, type(None))):
        return preview(value, 40)
    shape = shape_of(value)
    return f"{kind} {shape}" if shape else kind
