"""Data frames and series of pandas: shape, types, nulls, figures, first rows. Never copied, sampled when large."""

from __future__ import annotations

import html
import warnings
from typing import Any

from zq_notebook.notebook.column_stats import array_figures, number, object_figures
from zq_notebook.notebook.inspection import Inspection, bounded
from zq_notebook.notebook.safe_access import class_module, full_name
from zq_notebook.notebook.safe_repr import hides, preview
from zq_notebook.notebook.sampling import positions, rows_to_take
from zq_notebook.text.truncate import group

MAX_COLUMNS = 40
HEAD_ROWS = 5
HEAD_COLUMNS = 12
_CELL = 30


def inspect_frame(frame: Any, note: str = "") -> Inspection:
    """A pandas ``DataFrame``; ``note`` is said first."""
    rows, columns = frame.shape
    taken = rows_to_take(rows, min(columns, MAX_COLUMNS))
    shown = list(range(min(columns, MAX_COLUMNS)))
    head = frame.iloc[:HEAD_ROWS, : max(HEAD_COLUMNS, 1)]
    chosen = positions(rows, taken) if taken < rows else None
    summary = f"{_name(frame)} {group(rows)} × {group(columns)}"
    lines = [note] if note else []
    lines.append(f"{_name(frame)}: {rows:,} rows × {columns:,} columns; {_memory(frame)}; index: {_index(frame.index)}")
    if rows and taken < rows:
        lines.append(f"Figures and nulls are from a sample of {taken:,} rows spread over all, not from every row.")
    lines += _label_notes(frame.columns)
    lines.append("columns (name | type | nulls | figures):")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for position in shown:
            label = frame.columns[position]
            column = frame.iloc[:, position]  # a view; taking rows of the whole frame would copy every column
            column = column if chosen is None else column.take(chosen)
            lines.append(f"  {preview(label, 60)} | {_column(column, label, taken < rows)}")
    if columns > MAX_COLUMNS:
        lines += _other_columns(frame)
    cells = [[_cell(cell) for cell in row] for row in _rows_of(head)]
    labels = [preview(label, _CELL) for label in head.columns]
    index = [preview(label, _CELL) for label in _values(head.index)] if cells else []
    lines += _head_lines(labels, index, cells, columns, rows)
    return Inspection(bounded(lines), summary, _table(labels, index, cells, rows, columns))


def inspect_series(series: Any) -> Inspection:
    """A pandas ``Series`` or ``Index``."""
    rows = series.shape[0]
    taken = rows_to_take(rows, 1)
    sample = series.take(positions(rows, taken)) if taken < rows else series
    named = "" if series.name is None else f" {preview(series.name, 60)}"
    lines = [f"{_name(series)}{named}: {rows:,} values of type {str(series.dtype)[:80]}"]
    if hasattr(series, "index"):
        lines[0] += f"; index: {_index(series.index)}"
    if taken < rows:
        lines.append(f"Figures and nulls are from a sample of {taken:,} values spread over all, not from every value.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if getattr(series, "nlevels", 1) > 1:
            lines += [
                f"  level {preview(level.name, 40)}: {len(level):,} values, {level.dtype}" for level in series.levels
            ]
        else:
            lines.append(_column(sample, series.name, taken < rows))
    first = series.iloc[:10] if hasattr(series, "iloc") else series[:10]
    lines.append("first values: " + ", ".join(preview(value, 60) for value in _values(first)))
    return Inspection(bounded(lines), f"{_name(series)} {group(rows)}, {str(series.dtype)[:40]}")


def _name(value: Any) -> str:
    return full_name(type(value)).rpartition(".")[2]


def _column(column: Any, label: object, sampled: bool) -> str:
    dtype = column.dtype
    if not _known(dtype):
        return f"{str(dtype)[:60]} | – | values of a foreign type, not looked into"
    try:
        null = column.isna()
        nulls = int(null.sum())
        shown_nulls = f"~{nulls / max(len(column), 1):.2%}" if sampled and nulls else f"{nulls:,}"
        if sampled and not nulls:
            shown_nulls = "none seen"
        return f"{str(dtype)[:60]} | {shown_nulls} | {_figures(column, null, nulls, label)}"
    except (TypeError, ValueError, OverflowError, ArithmeticError, NotImplementedError) as error:
        return f"{str(dtype)[:60]} | ? | no figures ({type(error).__name__})"


def _figures(column: Any, null: Any, nulls: int, label: object) -> str:
    import numpy as np

    kind = getattr(column.dtype, "kind", "O")
    if str(column.dtype) == "category":
        return _categories(column)
    known = column[~null] if nulls else column
    if isinstance(column.dtype, np.dtype) and kind in "biufcmM":
        return array_figures(known.to_numpy())
    if kind in "iuf":
        return array_figures(known.to_numpy(dtype=np.float64))
    if kind == "b":
        return array_figures(known.to_numpy(dtype=bool))
    if kind == "M":
        return f"min {known.min()}, max {known.max()}" if len(known) else "all null"
    values = known.tolist()
    if values and hides(label, values[0]):
        return "texts, not shown: the column's name suggests secrets"
    return object_figures(values)


def _categories(column: Any) -> str:
    import numpy as np

    codes = column.cat.codes if hasattr(column, "cat") else column.codes
    codes = np.asarray(codes)
    categories = column.dtype.categories
    counts = np.bincount(codes[codes >= 0], minlength=1)
    order = np.argsort(counts)[::-1][:3]
    common = ", ".join(f"{preview(categories[i], 30)} {counts[i]:,}" for i in order if counts[i])
    ordered = " (ordered)" if column.dtype.ordered else ""
    return f"{len(categories):,} categories{ordered}" + (f": {common}" if common else "")


def _known(dtype: Any) -> bool:
    return class_module(type(dtype)).partition(".")[0] in ("numpy", "pandas")


def _index(index: Any) -> str:
    kind = _name(index)
    if kind == "RangeIndex":
        return f"{index.start}…{index.stop - 1 if len(index) else index.stop}" + (
            f" step {index.step}" if index.step != 1 else ""
        )
    names = ", ".join(preview(name, 30) for name in list(index.names)[:6])
    ends = ""
    if len(index) and _known(index.dtype):
        ends = f", {preview(index[:1].tolist()[0], 40)} … {preview(index[-1:].tolist()[0], 40)}"
    return f"{kind} ({names}){ends}"


def _memory(frame: Any) -> str:
    used = int(frame.memory_usage(deep=False).sum())
    texts = any(str(dtype) in ("object", "str", "string") for dtype in set(frame.dtypes))
    return f"{size_text(used)}{' without the contents of texts and objects' if texts else ''}"


def size_text(size: float) -> str:
    """Bytes as people say them."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


def _label_notes(labels: Any) -> list[str]:
    notes = []
    if labels.nlevels > 1:
        notes.append(f"The columns have {labels.nlevels} levels.")
    try:
        twice = labels[labels.duplicated()].unique()[:10]
    except TypeError:
        return notes
    if len(twice):
        notes.append("Column names that occur more than once: " + ", ".join(preview(name, 40) for name in twice))
    return notes


def _other_columns(frame: Any) -> list[str]:
    """The columns without figures, by type."""
    by_type: dict[str, list[str]] = {}
    for label, dtype in zip(list(frame.columns[MAX_COLUMNS:]), list(frame.dtypes)[MAX_COLUMNS:], strict=True):
        by_type.setdefault(str(dtype)[:60], []).append(preview(label, 40))
    lines = [f"{frame.shape[1] - MAX_COLUMNS:,} more columns, without figures:"]
    for dtype, names in by_type.items():
        more = f", … {len(names):,} in all" if len(names) > 30 else ""
        lines.append(f"  {dtype}: {', '.join(names[:30])}{more}")
    return lines


def _values(values: Any) -> list[Any]:
    if not _known(values.dtype):
        return [f"<{str(values.dtype)[:20]}>"] * len(values)
    return list(values.tolist())


def _rows_of(head: Any) -> list[list[Any]]:
    columns = [_values(head.iloc[:, position]) for position in range(head.shape[1])]
    hidden = [
        ["…hidden…" if hides(label, value) else value for value in column]
        for label, column in zip(list(head.columns), columns, strict=True)
    ]
    return [list(row) for row in zip(*hidden, strict=True)]


def _head_lines(labels: list[str], index: list[str], cells: list[list[str]], columns: int, rows: int) -> list[str]:
    if not cells:
        return ["It has no rows." if rows == 0 else "It has no columns."]
    table = [["", *labels], *([name, *row] for name, row in zip(index, cells, strict=True))]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    lines = [
        f"first {len(cells)} rows" + (f" of the first {len(labels)} columns" if columns > len(labels) else "") + ":"
    ]
    return lines + [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table
    ]


def _cell(value: object) -> str:
    return number(value) if type(value) is float else preview(value, _CELL)


def _table(labels: list[str], index: list[str], cells: list[list[str]], rows: int, columns: int) -> str:
    def row(cells: list[str], tag: str, first: str = "th") -> str:
        head, *rest = cells
        return (
            f"<tr><{first}>{html.escape(head)}</{first}>"
            + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in rest)
            + "</tr>"
        )

    more = " …" if columns > len(labels) else ""
    body = "".join(row([name, *line], "td") for name, line in zip(index, cells, strict=True))
    return (
        f"<table><thead>{row(['', *labels], 'th')}</thead><tbody>{body}</tbody></table>"
        f"<p>{group(rows)} rows × {group(columns)} columns{more}</p>"
    )
