"""Arrays of NumPy, and tables of other libraries that are there but that we never import."""

from __future__ import annotations

import warnings
from typing import Any

from zq_notebook.notebook.column_stats import array_figures, number, object_figures
from zq_notebook.notebook.inspect_tables import size_text
from zq_notebook.notebook.inspection import Inspection, bounded
from zq_notebook.notebook.safe_access import class_name, is_a
from zq_notebook.notebook.safe_repr import preview
from zq_notebook.notebook.sampling import MAX_CELLS, positions
from zq_notebook.text.truncate import group

_SAMPLE = 100_000
_FROM_DISK = 2_000  # each value of a memory-mapped file may be a page to read
_MAX_COLUMNS = 40


def inspect_array(array: Any) -> Inspection:
    """A NumPy array of any shape and type."""
    name = class_name(type(array))
    shape = " × ".join(group(size) for size in array.shape) or "scalar"
    lines = [f"NumPy {name}: shape {array.shape}, dtype {str(array.dtype)[:200]}, {size_text(array.nbytes)}"]
    values, sampled = _flat_sample(array, name)
    if sampled:
        lines.append(f"Figures are from a sample of {values.size:,} of {array.size:,} values.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines += _array_lines(values, array.dtype)
    if array.ndim == 2 and array.dtype.names is None:
        lines.append("corner:")
        lines += ["  " + ", ".join(preview(value, 24) for value in row) for row in array[:5, :8].tolist()]
    elif array.size:
        first = array.ravel()[:10] if array.size <= _SAMPLE else array[(0,) * (array.ndim - 1)][:10]
        lines.append("first values: " + ", ".join(preview(value, 40) for value in first.tolist()))
    return Inspection(bounded(lines), f"array {shape}, {str(array.dtype)[:40]}")


def _flat_sample(array: Any, name: str) -> tuple[Any, bool]:
    import numpy as np

    plain = np.ma.getdata(array) if name == "MaskedArray" else array
    wanted = _FROM_DISK if name == "memmap" else _SAMPLE
    if plain.size <= (wanted if name == "memmap" else MAX_CELLS):
        return plain.reshape(-1), False
    return plain[np.unravel_index(positions(plain.size, wanted), plain.shape)], True


def _array_lines(values: Any, dtype: Any) -> list[str]:
    import numpy as np

    if dtype.names is not None:
        return [
            f"  field {name}: {dtype[name]} | {_figures(values[name])}" for name in list(dtype.names)[:_MAX_COLUMNS]
        ]
    lines = []
    if dtype.kind == "f":
        nulls = int(np.isnan(values).sum())
        lines.append(f"NaN: {nulls:,} of {values.size:,}")
    figures = _figures(values)
    return [*lines, figures] if figures else lines


def _figures(values: Any) -> str:
    kind = values.dtype.kind
    if kind in "biufcmM":
        return array_figures(values.reshape(-1))
    if kind in "OUS":
        return object_figures(values.reshape(-1)[:20_000].tolist())
    return ""


def inspect_foreign(value: Any) -> Inspection | None:
    """Tables of polars and pyarrow; ``None`` for anything else."""
    if is_a(value, "polars", "DataFrame"):
        return _polars_frame(value)
    if is_a(value, "polars", "Series"):
        return _polars_series(value)
    if is_a(value, "pyarrow", "Table", "RecordBatch"):
        return _arrow_table(value)
    return None


def _polars_frame(frame: Any) -> Inspection:
    rows, columns = frame.shape
    taken = min(rows, 20_000)
    lines = [f"polars DataFrame: {rows:,} rows × {columns:,} columns, about {size_text(frame.estimated_size())}"]
    names = frame.columns[:_MAX_COLUMNS]
    sample = frame.select(names) if taken == rows else frame.select(names)[positions(rows, taken).tolist()]
    if taken < rows:
        lines.append(f"Figures are from a sample of {taken:,} rows spread over all; nulls are exact.")
    lines.append("columns (name | type | nulls | figures):")
    for name in names:
        column = sample.get_column(name)
        nulls = frame.get_column(name).null_count()
        lines.append(f"  {preview(name, 60)} | {str(column.dtype)[:60]} | {nulls:,} | {_polars_figures(column)}")
    if columns > _MAX_COLUMNS:
        lines.append(f"{columns - _MAX_COLUMNS:,} more columns: " + ", ".join(frame.columns[_MAX_COLUMNS:100]))
    lines.append("first rows:")
    for row in frame[:5].select(frame.columns[:12]).rows():
        lines.append("  " + ", ".join(preview(cell, 30) for cell in row))
    return Inspection(bounded(lines), f"DataFrame {group(rows)} × {group(columns)}")


def _polars_series(series: Any) -> Inspection:
    rows = len(series)
    taken = min(rows, 20_000)
    lines = [f"polars Series {preview(series.name, 60)}: {rows:,} values of type {series.dtype}"]
    lines.append(f"nulls: {series.null_count():,}")
    if taken < rows:
        lines.append(f"Figures are from a sample of {taken:,} values spread over all.")
    sample = series if taken == rows else series.gather(positions(rows, taken).tolist())
    lines.append(_polars_figures(sample))
    lines.append("first values: " + ", ".join(preview(value, 60) for value in series[:10].to_list()))
    return Inspection(bounded(lines), f"Series {group(rows)}, {series.dtype}")


def _polars_figures(column: Any) -> str:
    dtype = str(column.dtype)
    if dtype.startswith("Object"):
        return "Python objects, not looked into"
    known = column.drop_nulls()
    if not len(known):
        return "all null" if len(column) else "empty"
    if dtype.startswith(("Int", "UInt", "Float", "Decimal")):
        middle = number(float(known.mean()))
        return f"min {number(known.min())}, mean {middle}, max {number(known.max())}"
    if dtype.startswith(("Date", "Time", "Duration")):
        return f"min {known.min()}, max {known.max()}"
    return object_figures(known.to_list())


def _arrow_table(table: Any) -> Inspection:
    rows, columns = table.num_rows, table.num_columns
    lines = [f"pyarrow {class_name(type(table))}: {rows:,} rows × {columns:,} columns, {size_text(table.nbytes)}"]
    lines.append("columns (name | type | nulls | first values):")
    for position, name in enumerate(table.column_names[:_MAX_COLUMNS]):
        column = table.column(position)
        first = ""
        if not str(column.type).startswith("extension"):
            first = ", ".join(preview(value, 30) for value in column.slice(0, 5).to_pylist())
        lines.append(f"  {preview(name, 60)} | {str(column.type)[:60]} | {column.null_count:,} | {first}")
    if columns > _MAX_COLUMNS:
        lines.append(f"{columns - _MAX_COLUMNS:,} more columns: " + ", ".join(table.column_names[_MAX_COLUMNS:100]))
    return Inspection(bounded(lines), f"Table {group(rows)} × {group(columns)}")
