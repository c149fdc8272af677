"""``inspect_variable``: one object in detail, bounded on anything, and without running code of its class."""

from __future__ import annotations

import sys
from typing import Any

from zq_notebook.notebook.inspection import Inspection
from zq_notebook.notebook.namespace import user_variables
from zq_notebook.notebook.safe_access import class_name, full_name, inherits, instance_dict, is_a
from zq_notebook.notebook.value_path import resolve
from zq_notebook.text.terminal import plain
from zq_notebook.toolio import ToolOutput

_ARRAYS = ("ndarray", "memmap", "matrix", "recarray", "MaskedArray")


def inspect_path(shell: Any, path: str) -> ToolOutput:
    """The tool: the object at ``path`` among the user's variables. Raises ``ToolError`` for a path that cannot be."""
    value = resolve(path, user_variables(shell, private=True))
    found = inspect_value(value)
    display = {"text/plain": found.text}
    if found.html:
        display["text/html"] = found.html
    return ToolOutput(text=plain(f"{path.strip()[:200]}: {found.text}"), summary=plain(found.summary), display=display)


def inspect_value(value: Any) -> Inspection:
    """What ``value`` is and holds. Never raises: a library that fails over its own object leaves the plain view."""
    try:
        return _by_kind(value)
    except Exception as error:
        return Inspection(
            f"{full_name(type(value))}: it could not be looked into ({type(error).__name__}). Use run_code.",
            full_name(type(value)),
        )


def _by_kind(value: Any) -> Inspection:
    from zq_notebook.notebook import inspect_objects

    found = inspect_objects.inspect_container(value) or inspect_objects.inspect_code(value)
    if found is not None:
        return found
    if is_a(value, "pandas", "DataFrame") or inherits(value, "pandas", "DataFrame"):
        return _frame(value)
    if is_a(value, "pandas") and class_name(type(value)).endswith(("Series", "Index")):
        from zq_notebook.notebook.inspect_tables import inspect_series

        return inspect_series(value)
    if is_a(value, "numpy", *_ARRAYS):
        from zq_notebook.notebook.inspect_arrays import inspect_array

        return inspect_array(value)
    if is_a(value, "polars") or is_a(value, "pyarrow"):
        from zq_notebook.notebook.inspect_arrays import inspect_foreign

        foreign = inspect_foreign(value)
        if foreign is not None:
            return foreign
    return inspect_objects.inspect_object(value)


def _frame(value: Any) -> Inspection:
    from zq_notebook.notebook.inspect_tables import inspect_frame

    if is_a(value, "pandas", "DataFrame"):
        return inspect_frame(value)
    # A subclass may answer anything with code of its own: look at its data as the plain frame that it is.
    pandas: Any = sys.modules["pandas"]
    manager = (instance_dict(value) or {})["_mgr"]
    plain_frame = pandas.DataFrame._from_mgr(manager, axes=manager.axes)
    return inspect_frame(plain_frame, note=f"{full_name(type(value))}, a kind of DataFrame.")
