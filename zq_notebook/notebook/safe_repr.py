"""One-line previews of any object: bounded in time and size, and without running code of the object's class."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import itertools
import os
import pathlib
import re
import types
import uuid
from collections import deque
from collections.abc import Iterable
from typing import Any

from zq_notebook.notebook.safe_access import (
    class_module,
    class_name,
    full_name,
    instance_dict,
    is_a,
    isinstance_of,
    items_of,
    module_dict,
    one_of,
)
from zq_notebook.text.terminal import plain

_MAX_INT_BITS = 4_000
_ITEMS = 6
_MAX_SORTED = 1_000
_MAX_SORTED_BY_PREVIEW = 50
# Their repr is short, quick and written in the standard library.
_SAFE = (
    *(type(None), bool, float, complex, range, type(Ellipsis), type(NotImplemented)),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
    *(fractions.Fraction, uuid.UUID, pathlib.PosixPath, pathlib.WindowsPath),
    *(pathlib.PurePosixPath, pathlib.PureWindowsPath),
)
_PANDAS_SCALARS = ("Timestamp", "Timedelta", "NaTType", "NAType", "Period", "Interval")
_SECRET_NAME = re.compile(
    r"(?i)(api|access|secret|private|auth|account|encryption|license|signing)[_-]?keys?$"
    r"|(^|[_-])(token|passw(or)?d|passwd|pwd|passphrase|credentials?)$|secret|(?-i:^[A-Z0-9_]+_KEY$)"
)


def hides(name: object, value: object) -> bool:
    """Whether ``value`` is text under a name that sounds like a secret's; such text is not shown to a model."""
    return type(name) is str and isinstance_of(value, (str, bytes)) and _SECRET_NAME.search(name) is not None


def preview(value: object, limit: int = 80) -> str:
    """One line, at most ``limit`` characters."""
    text = " ".join(plain(_Previewer(limit).show(value, 0)).split())
    return text if len(text) <= limit else text[: max(limit - 1, 1)] + "…"


class _Previewer:
    """Carries how much may still be written, and which containers are being written (for cycles)."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._open: set[int] = set()

    def show(self, value: object, depth: int) -> str:
        text = self._atom(value)
        if text is None:
            text = self._nested(value, depth)
        self._left -= len(text)
        return text

    def _atom(self, value: Any) -> str | None:
        cls = type(value)
        if one_of(cls, _SAFE):
            return repr(value)[:300]
        if isinstance_of(value, enum.Enum):
            return f"{class_name(cls)}.{(instance_dict(value) or {}).get('_name_', '?')}"
        if isinstance_of(value, int):
            return _int(value)
        if isinstance_of(value, str):
            return _text(str.__getitem__(value, slice(0, 200)), str.__len__(value))
        if isinstance_of(value, (bytes, bytearray)):
            base: Any = bytes if isinstance_of(value, bytes) else bytearray
            return _text(bytes(base.__getitem__(value, slice(0, 200))), base.__len__(value))
        if cls is decimal.Decimal:
            return repr(value) if len(value.as_tuple().digits) < 100 else "Decimal(… many digits …)"
        return _library_value(value) or _code_object(value)

    def _nested(self, value: Any, depth: int) -> str:
        if id(value) in self._open:
            return "…"
        if depth >= 3 or self._left <= 0:
            return _short_name(value)
        self._open.add(id(value))
        try:
            if isinstance_of(value, dict):
                return self._dict(value, depth)
            for base, brackets in ((list, "[]"), (tuple, "()"), (set, "{}"), (frozenset, "{}"), (deque, "[]")):
                if isinstance_of(value, base):
                    return self._sequence(value, base, brackets, depth)
            return self._object(value, depth)
        finally:
            self._open.discard(id(value))

    def _sequence(self, value: Any, base: Any, brackets: str, depth: int) -> str:
        size = base.__len__(value)
        items = [self.show(item, depth + 1) for item in self._while_room(in_order(base, value))]
        more = f", … {size} items" if size > len(items) else ""
        comma = "," if base is tuple and size == 1 else ""
        body = f"{brackets[0]}{', '.join(items)}{comma}{more}{brackets[1]}" if size or base is not set else "set()"
        if base in (frozenset, deque):
            return f"{base.__name__}({body})"
        return body if type(value) is base else f"{class_name(type(value))}({body})"

    def _dict(self, value: dict[Any, Any], depth: int) -> str:
        size = dict.__len__(value)
        items = []
        for key, item in self._while_room(items_of(value)):
            shown = "…hidden…" if hides(key, item) else self.show(item, depth + 1)
            items.append(f"{self.show(key, depth + 1)}: {shown}")
        more = f", … {size} items" if size > len(items) else ""
        body = "{" + ", ".join(items) + more + "}"
        return body if type(value) is dict else f"{class_name(type(value))}({body})"

    def _object(self, value: object, depth: int) -> str:
        held = instance_dict(value)
        if not held or class_module(type(value)) != "__main__":
            return _short_name(value)
        items = []
        for key, item in self._while_room(items_of(held)):
            if type(key) is str and not key.startswith("_"):
                items.append(f"{key}={'…hidden…' if hides(key, item) else self.show(item, depth + 1)}")
        return f"{class_name(type(value))}({', '.join(items)})" if items else _short_name(value)

    def _while_room(self, items: Iterable[Any]) -> Iterable[Any]:
        try:
            for item in itertools.islice(items, _ITEMS):
                if self._left <= 0:
                    return
                yield item
        except RuntimeError:
            return  # it was changed by another thread while we looked


def in_order(base: Any, value: Any) -> Iterable[Any]:
    """The items of a container; those of a set sorted where that is cheap, as its own order differs from run to run."""
    size = base.__len__(value)
    if not one_of(base, (set, frozenset)) or size > _MAX_SORTED:
        return base.__iter__(value)  # type: ignore[no-any-return]
    try:
        items = list(base.__iter__(value))
    except RuntimeError:
        return ()  # it was changed by another thread while we looked
    if all(type(item) is str for item in items):
        return sorted(items)
    return sorted(items, key=preview) if size <= _MAX_SORTED_BY_PREVIEW else items


def _int(value: int) -> str:
    bits = int.bit_length(value)
    return int.__repr__(value) if bits <= _MAX_INT_BITS else f"an integer of {bits:,} bits"


def _text(head: str | bytes, size: int) -> str:
    return repr(head) if len(head) == size else f"{head!r}… ({size:,} {'chars' if isinstance(head, str) else 'bytes'})"


def _library_value(value: Any) -> str | None:
    """Values of libraries that are trusted to show themselves, and big ones by their shape."""
    cls = type(value)
    if is_a(value, "pandas", *_PANDAS_SCALARS):
        return str(value)[:100]
    if is_a(value, "numpy"):
        return _numpy_value(value)
    if is_a(value, "pandas", "DataFrame", "Series", "Index", "RangeIndex", "DatetimeIndex", "MultiIndex"):
        shape = value.shape
        return f"{class_name(cls)} {' × '.join(map(str, shape))}"
    if is_a(value, "polars", "DataFrame", "Series"):
        shape = value.shape
        return f"polars.{class_name(cls)} {' × '.join(map(str, shape))}"
    if is_a(value, "pyarrow", "Table", "RecordBatch"):
        return f"pyarrow.{class_name(cls)} {value.num_rows} × {value.num_columns}"
    if cls is type(os.environ):
        return f"environ of {len(os.environ)} variables"
    return None


def _numpy_value(value: Any) -> str | None:
    name = class_name(type(value))
    if name in ("ndarray", "memmap", "matrix", "recarray", "MaskedArray"):
        return f"{name} {value.dtype!s:.60} {value.shape}"
    if name.endswith("DType"):
        return f"dtype {str(value)[:60]}"
    if name in ("str_", "bytes_", "void", "object_"):
        return None
    ndim = getattr(value, "ndim", None)
    return repr(value)[:100] if ndim == 0 else None


def _code_object(value: Any) -> str | None:
    """Functions, classes and modules."""
    if isinstance_of(value, type):
        return f"<class {full_name(value)}>"
    if isinstance_of(value, types.ModuleType):
        name = module_dict(value).get("__name__")
        return f"<module {name}>" if type(name) is str else "<module>"
    if isinstance_of(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        name = getattr(value, "__name__", "?") if not isinstance_of(value, types.MethodType) else _method_name(value)
        return f"<function {name}>"
    if isinstance_of(value, re.Pattern):
        return f"re.compile({value.pattern!r:.80})"
    return None


def _method_name(value: Any) -> str:
    function = types.MethodType.__dict__["__func__"].__get__(value)
    return function.__name__ if isinstance_of(function, types.FunctionType) else "?"


def _short_name(value: Any) -> str:
    size = ""
    bases: tuple[Any, ...] = (dict, list, tuple, set, frozenset, deque)
    for base in bases:
        if isinstance_of(value, base):
            size = f" of {base.__len__(value)}"
    return f"<{full_name(type(value))}{size}>"
