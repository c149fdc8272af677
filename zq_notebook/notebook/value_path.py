"""Paths like ``df["price"]``, ``config['runs'][0]`` or ``model.params``, followed without running user code."""

from __future__ import annotations

import ast
import collections
import types
from collections import deque
from collections.abc import Mapping
from typing import Any

from zq_notebook.errors import ToolError
from zq_notebook.notebook.safe_access import (
    MISSING,
    class_attribute,
    class_module,
    full_name,
    get_item,
    instance_dict,
    is_a,
    is_genuine,
    isinstance_of,
    module_dict,
)
from zq_notebook.notebook.safe_repr import preview

_TUPLE_GETTER = type(collections.namedtuple("_P", "x").x)  # type: ignore[attr-defined]
# Attributes that the libraries answer quickly and without making anything large.
_LIBRARY_ATTRIBUTES = {
    "pandas": {"index", "columns", "dtypes", "shape", "size", "ndim", "name", "dtype", "iloc", "loc", "attrs", "names"},
    "numpy": {"shape", "dtype", "size", "ndim", "T", "nbytes", "itemsize", "strides"},
    "polars": {"shape", "columns", "schema", "dtypes", "width", "height", "name", "dtype"},
    "pyarrow": {"shape", "schema", "num_rows", "num_columns", "column_names", "type", "nbytes"},
}
_FRAMES = {"pandas": ("DataFrame", "Series", "_iLocIndexer", "_LocIndexer"), "polars": ("DataFrame", "Series")}


def resolve(path: str, names: Mapping[str, Any]) -> Any:
    """The object at ``path``, starting from the variables ``names``.

    Raises ``ToolError`` that says what is possible instead.
    """
    try:
        tree = ast.parse(path.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolError(
            f"{path[:200]!r} is not a path. Give a variable's name, or a path with attributes and literal indexes: "
            "df['price'], config['runs'][0], model.params. For anything else use run_code."
        ) from None
    return _follow(tree, names)


def _follow(node: ast.expr, names: Mapping[str, Any]) -> Any:
    steps: list[ast.Attribute | ast.Subscript] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        steps.append(node)
        node = node.value
    if not isinstance(node, ast.Name):
        raise ToolError("A path starts with a variable's name and may not call anything; use run_code for that.")
    value = names.get(node.id, MISSING)
    if value is MISSING:
        raise ToolError(f"There is no variable {node.id!r}. {_similar(node.id, names)}")
    for step in reversed(steps):
        match step:
            case ast.Attribute():
                value = _attribute(value, step.attr)
            case ast.Subscript():
                value = _item(value, _literal(step.slice))
    return value


def _similar(name: str, names: Mapping[str, Any]) -> str:
    import difflib

    known = [key for key in names if type(key) is str and not key.startswith("_")]
    close = difflib.get_close_matches(name, known, n=5, cutoff=0.5)
    return f"Did you mean {', '.join(close)}?" if close else "list_variables shows what there is."


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Slice):
        parts = [None if part is None else _literal(part) for part in (node.lower, node.upper, node.step)]
        return slice(*parts)
    if isinstance(node, ast.Tuple):
        return tuple(_literal(part) for part in node.elts)
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise ToolError(
            "Only literal indexes can be followed (numbers, texts, slices). Use run_code for a computed one."
        ) from None
    if isinstance(value, (list, dict, set)):
        raise ToolError("An index must be a number, a text or a slice; use run_code to select by a list.")
    return value


def _attribute(value: Any, name: str) -> Any:
    if isinstance_of(value, types.ModuleType):
        return _found(module_dict(value).get(name, MISSING), value, name)
    if isinstance_of(value, type):
        return _found(class_attribute(value, name), value, name)
    root = class_module(type(value)).partition(".")[0]
    if name in _LIBRARY_ATTRIBUTES.get(root, ()) and _trusted(value):
        return getattr(value, name)
    if is_a(value, "pandas", "DataFrame") and _trusted(value) and name in value.columns:
        return value[name]
    return _plain_attribute(value, name)


def _plain_attribute(value: Any, name: str) -> Any:
    held = instance_dict(value)
    of_class = class_attribute(type(value), name)
    kind = type(of_class)
    if kind is types.MemberDescriptorType:
        try:
            return of_class.__get__(value, type(value))
        except AttributeError:
            of_class = MISSING
    elif kind is _TUPLE_GETTER:
        return of_class.__get__(value, type(value))
    elif of_class is not MISSING and class_attribute(kind, "__set__") is not MISSING:
        raise _computed(value, name, kind)
    if held is not None:
        found = get_item(held, name)
        if found is not MISSING:
            return found
    if of_class is not MISSING and class_attribute(kind, "__get__") is not MISSING and kind is not types.FunctionType:
        raise _computed(value, name, kind)
    return _found(of_class, value, name)


def _computed(value: Any, name: str, kind: type) -> ToolError:
    return ToolError(
        f"{full_name(type(value))}.{name} is computed when it is read (by a {full_name(kind)}), and inspecting runs no "
        "code. Use run_code to read it."
    )


def _found(found: Any, value: Any, name: str) -> Any:
    if found is not MISSING:
        return found
    held = instance_dict(value) or {}
    known = ", ".join(key for key in list(held)[:30] if type(key) is str)
    raise ToolError(
        f"{preview(value, 60)} holds no attribute {name!r} of its own."
        + (f" It holds: {known}." if known else " Use run_code if its class computes it.")
    )


def _item(value: Any, key: Any) -> Any:
    try:
        if isinstance_of(value, dict):
            return _dict_item(value, key)
        bases: tuple[Any, ...] = (list, tuple, str, bytes, bytearray, range)
        for base in bases:
            if isinstance_of(value, base):
                return base.__getitem__(value, key)
        if isinstance_of(value, deque) and isinstance(key, int):
            return deque.__getitem__(value, key)
        if _trusted(value) and (is_a(value, "numpy") or _is_frame(value)):
            return value[key]
        if is_a(value, "pyarrow", "Table", "RecordBatch") and isinstance(key, (str, int)):
            return value.column(key)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ToolError(f"{preview(value, 60)} has no item {key!r} ({type(error).__name__}).") from None
    raise ToolError(
        f"{full_name(type(value))} answers [{key!r}] with code of its own, and inspecting runs none. Use run_code."
    )


def _dict_item(value: dict[Any, Any], key: Any) -> Any:
    found = get_item(value, key)
    if found is MISSING:
        keys = ", ".join(preview(known, 40) for known in list(dict.keys(value))[:20])
        raise ToolError(f"The dictionary has no key {key!r}. It has {dict.__len__(value)} keys: {keys}")
    return found


def _is_frame(value: Any) -> bool:
    return any(is_a(value, module, *names) for module, names in _FRAMES.items())


def _trusted(value: Any) -> bool:
    """Whether the object's own class, and not just a base, is the library's; and its columns' types too."""
    root = class_module(type(value)).partition(".")[0]
    if not is_genuine(type(value)):
        return False
    if root == "pandas" and is_a(value, "pandas", "Series"):
        return class_module(type(value.dtype)).partition(".")[0] in ("pandas", "numpy")
    return root in _LIBRARY_ATTRIBUTES
