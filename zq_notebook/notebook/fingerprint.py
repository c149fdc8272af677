"""Cheap marks by which a change inside an object is noticed: equal as long as nobody touched it.

A mark is made of sizes, shapes, types, and a sample of the contents. What cannot be looked at without running code of
the object's class has no mark, and then only a new object under the same name counts as a change.
"""

from __future__ import annotations

import itertools
import zlib
from collections import deque
from typing import Any

from zq_notebook.notebook.safe_access import class_module, instance_dict, is_a, isinstance_of, one_of

_ITEMS = 128
_WHOLE_BYTES = 1_000_000
_BLOCK = 4_096
_BLOCKS = 64
_ROWS = 48
_COLUMNS = 120
_SCALARS = (bool, int, float, complex, type(None))

Mark = tuple[Any, ...]


def fingerprint(value: Any) -> Mark | None:
    """The mark of ``value`` as it is now, in at most a few milliseconds; ``None`` if it can have none."""
    try:
        return _mark(value)
    except Exception:
        return None  # looking must never be what breaks a turn; without a mark only rebinding is noticed


def _mark(value: Any) -> Mark | None:
    if isinstance_of(value, dict):
        size = dict.__len__(value)
        pairs = itertools.islice(dict.items(value), _ITEMS)
        return (size, *(token for key, item in pairs for token in (_token(key), _token(item))))
    for base in (list, deque):
        if isinstance_of(value, base):
            return _sequence_mark(value, base)
    if isinstance_of(value, set):
        return (set.__len__(value), *map(_token, itertools.islice(set.__iter__(value), _ITEMS)))
    if isinstance_of(value, bytearray):
        return (bytearray.__len__(value), _bytes_mark(memoryview(value)))
    if is_a(value, "numpy", "ndarray", "memmap", "matrix", "recarray", "MaskedArray"):
        return _array_mark(value)
    if is_a(value, "pandas", "DataFrame"):
        return _frame_mark(value)
    if is_a(value, "pandas", "Series"):
        return (value.shape, str(value.dtype), _column_mark(value))
    if is_a(value, "polars", "DataFrame"):
        return (value.shape, tuple(value.columns), *map(str, value.dtypes))
    return _object_mark(value)


def _token(item: Any) -> Any:
    """Stands for an element: plain values by themselves, the rest by identity."""
    kind = type(item)
    if kind is str or kind is bytes:
        return item if len(item) <= 256 else (len(item), item[:64], item[-64:])
    if one_of(kind, _SCALARS) and item == item:
        return (kind, item)
    return (id(kind), id(item))  # not the class itself: comparing classes runs code of their metaclass


def _sequence_mark(value: Any, base: Any) -> Mark:
    size = base.__len__(value)
    if size <= 2 * _ITEMS or base is deque:
        return (size, *map(_token, itertools.islice(base.__iter__(value), 2 * _ITEMS)))
    step = size // _ITEMS
    picked = list.__getitem__(value, slice(None, None, step))
    return (size, *map(_token, picked), *map(_token, list.__getitem__(value, slice(-8, None))))


def _bytes_mark(view: memoryview) -> int:
    if view.nbytes <= _WHOLE_BYTES:
        return zlib.crc32(view)
    mark = 0
    step = (view.nbytes - _BLOCK) // (_BLOCKS - 1)
    for number in range(_BLOCKS):
        mark = zlib.crc32(view[number * step : number * step + _BLOCK], mark)
    return mark


def _array_mark(array: Any) -> Mark:
    head = (array.shape, str(array.dtype), array.strides, array.__array_interface__["data"][0])
    if array.dtype.hasobject:
        return (*head, *map(_token, array.reshape(-1)[:_ITEMS].tolist() if array.flags.c_contiguous else ()))
    if array.size == 0:
        return head
    if array.flags.c_contiguous:
        return (*head, _bytes_mark(memoryview(array.reshape(-1).view("u1"))))
    import numpy as np

    from zq_notebook.notebook.sampling import positions

    picked = array[np.unravel_index(positions(array.size, min(array.size, 4_096)), array.shape)]
    return (*head, zlib.crc32(picked.tobytes()))


def _frame_mark(frame: Any) -> Mark:
    rows, columns = frame.shape
    labels = tuple(map(_token, list(frame.columns)[:_COLUMNS]))
    marks = [_column_mark(frame.iloc[:, position]) for position in range(min(columns, _COLUMNS))]
    return (rows, columns, labels, tuple(map(str, list(frame.dtypes)[:_COLUMNS])), *marks)


def _column_mark(column: Any) -> Any:
    """A few rows of a column, by value; not by identity, as most kinds make their elements anew at each look."""
    import numpy as np

    if class_module(type(column.dtype)).partition(".")[0] not in ("numpy", "pandas"):
        return None
    rows = len(column)
    if isinstance(column.dtype, np.dtype) and not column.dtype.hasobject:
        return _array_mark(column.to_numpy())[4:]
    if rows > _ROWS:
        column = column.take(np.linspace(0, rows - 1, _ROWS).astype(np.int64))
    values = column.tolist()
    if isinstance(column.dtype, np.dtype):
        return tuple(map(_token, values))
    return tuple(str(value)[:64] if type(value) is not str else _token(value) for value in values)


def _object_mark(value: Any) -> Mark | None:
    """Attributes of the notebook's own classes and of estimators, where setting one is what changing it means."""
    module = class_module(type(value)).partition(".")[0]
    if module not in ("__main__", "sklearn"):
        return None
    held = instance_dict(value)
    return None if held is None else _mark(held)
