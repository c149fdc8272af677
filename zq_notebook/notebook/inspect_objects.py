"""Containers, functions, classes, modules and objects of any other kind."""

from __future__ import annotations

import inspect
import itertools
import os
import types
from collections import deque
from typing import Any

from IPython.core.getipython import get_ipython

from zq_notebook.notebook.inspection import Inspection, bounded
from zq_notebook.notebook.safe_access import (
    MISSING,
    class_attribute,
    class_dict,
    class_module,
    class_name,
    count_types,
    full_name,
    instance_dict,
    isinstance_of,
    items_of,
    module_dict,
    mro,
)
from zq_notebook.notebook.safe_repr import hides, in_order, preview
from zq_notebook.notebook.short_traceback import place_of
from zq_notebook.text.terminal import plain
from zq_notebook.text.truncate import group

_ITEMS = 20
_MAX_TYPES = 10_000
_LAZY = {
    "polars": ("LazyFrame", "collect() or head(10).collect()"),
    "dask": ("", "head() or compute()"),
    "duckdb": ("", "limit(10).df()"),
    "pyspark": ("", "limit(10).toPandas()"),
    "ibis": ("", "head(10).execute()"),
}


def inspect_container(value: Any) -> Inspection | None:
    """Texts, bytes, dictionaries, lists, tuples, sets; ``None`` for anything else."""
    if isinstance_of(value, str):
        return _text(value)
    if isinstance_of(value, (bytes, bytearray)):
        base: Any = bytes if isinstance_of(value, bytes) else bytearray
        size = base.__len__(value)
        head = bytes(base.__getitem__(value, slice(0, 200)))
        return Inspection(f"{class_name(type(value))} of {size:,} bytes, beginning {head!r}", f"{group(size)} bytes")
    if isinstance_of(value, dict):
        return _dict(value)
    bases: tuple[Any, ...] = (list, tuple, set, frozenset, deque)
    for base in bases:
        if isinstance_of(value, base):
            return _sequence(value, base)
    return None


def _text(value: str) -> Inspection:
    size = str.__len__(value)
    head = str.__getitem__(value, slice(0, 2_000))
    lines = str.count(value, "\n") + 1 if size <= 10_000_000 else None
    count = f" in {lines:,} lines" if lines and lines > 1 else ""
    text = f"{class_name(type(value))} of {size:,} characters{count}:\n{plain(head)}"
    return Inspection(text + ("\n…" if size > len(head) else ""), f"text, {group(size)} characters")


def _dict(value: dict[Any, Any]) -> Inspection:
    size = dict.__len__(value)
    lines = [f"{full_name(type(value))} of {size:,} items; {_types_of(dict.keys(value), 'keys')}; "]
    lines[0] += _types_of(dict.values(value), "values")
    for key, item in _first(items_of(value)):
        lines.append(f"  {preview(key, 80)}: {'…hidden…' if hides(key, item) else _item(item)}")
    if size > _ITEMS:
        lines.append(f"  … {size - _ITEMS:,} more")
    return Inspection(bounded(lines), f"{class_name(type(value))} of {group(size)}")


def _sequence(value: Any, base: Any) -> Inspection:
    size = base.__len__(value)
    named = _field_names(value)
    lines = [f"{full_name(type(value))} of {size:,} items; {_types_of(in_order(base, value), 'types')}"]
    for number, item in enumerate(_first(in_order(base, value))):
        label = "" if base in (set, frozenset) else f"{named[number] if number < len(named) else f'[{number}]'} "
        lines.append(f"  {label}{_item(item)}")
    if size > _ITEMS:
        lines.append(f"  … {size - _ITEMS:,} more")
    return Inspection(bounded(lines), f"{class_name(type(value))} of {group(size)}")


def _field_names(value: Any) -> list[str]:
    fields = class_attribute(type(value), "_fields")
    return [f".{name}" for name in fields] if type(fields) is tuple and isinstance_of(value, tuple) else []


def _item(item: object) -> str:
    return f"{preview(item, 200)}"


def _first(items: Any) -> list[Any]:
    try:
        return list(itertools.islice(items, _ITEMS))
    except RuntimeError:
        return []  # another thread is changing it


def _types_of(items: Any, what: str) -> str:
    try:
        counted = count_types(itertools.islice(items, _MAX_TYPES))
    except RuntimeError:
        return f"{what}: being changed by another thread"
    if not counted:
        return f"{what}: none"
    named = ", ".join(full_name(kind) + (f" {count:,}" if len(counted) > 1 else "") for kind, count in counted[:6])
    over = f" (of the first {_MAX_TYPES:,})" if sum(count for _, count in counted) >= _MAX_TYPES else ""
    return f"{what}: {named}{over}"


def inspect_code(value: Any) -> Inspection | None:
    """Functions, classes and modules; ``None`` for anything else."""
    if isinstance_of(value, types.MethodType):
        value = types.MethodType.__dict__["__func__"].__get__(value)
    if isinstance_of(value, types.FunctionType):
        code = value.__code__
        place = code.co_filename if os.path.isfile(code.co_filename) else place_of(code.co_filename, get_ipython(), "")
        lines = [f"function {value.__name__}{signature(value)}", f"defined in {place}, line {code.co_firstlineno}"]
        return Inspection(bounded(lines + _doc(value.__doc__)), f"function {value.__name__}")
    if isinstance_of(value, types.BuiltinFunctionType):
        text = value.__text_signature__
        lines = [f"built-in function {value.__name__}{text if type(text) is str else '(…)'}", *_doc(value.__doc__)]
        return Inspection(bounded(lines), f"function {value.__name__}")
    if isinstance_of(value, type):
        return _class(value)
    if isinstance_of(value, types.ModuleType):
        return _module(value)
    return None


def signature(function: types.FunctionType) -> str:
    """The parameters, with defaults as previews: their ``repr`` is not run."""
    code = function.__code__
    names = code.co_varnames
    count = code.co_argcount
    defaults = function.__defaults__ or ()
    keyword_defaults = function.__kwdefaults__ or {}
    first_default = count - len(defaults)
    parts = []
    for position in range(count):
        default = f"={preview(defaults[position - first_default], 40)}" if position >= first_default else ""
        parts.append(names[position] + default)
        if position + 1 == code.co_posonlyargcount:
            parts.append("/")
    keyword_only = names[count : count + code.co_kwonlyargcount]
    rest = count + code.co_kwonlyargcount
    if code.co_flags & inspect.CO_VARARGS:
        parts.append(f"*{names[rest]}")
        rest += 1
    elif keyword_only:
        parts.append("*")
    for name in keyword_only:
        parts.append(name + (f"={preview(keyword_defaults[name], 40)}" if name in keyword_defaults else ""))
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parts.append(f"**{names[rest]}")
    return f"({', '.join(parts)})"


def _doc(doc: object) -> list[str]:
    if type(doc) is not str or not doc.strip():
        return []
    return [plain(doc.strip().partition("\n")[0][:300])]


def _class(cls: type) -> Inspection:
    own = class_dict(cls)
    bases = ", ".join(full_name(base) for base in mro(cls)[1:-1])
    lines = [f"class {full_name(cls)}" + (f", bases: {bases}" if bases else "")]
    lines += _doc(own.get("__doc__"))
    init = class_attribute(cls, "__init__")
    if isinstance_of(init, types.FunctionType):
        lines.append(f"__init__{signature(init)}")
    methods = [
        name for name, item in own.items() if isinstance_of(item, types.FunctionType) and not name.startswith("_")
    ]
    if methods:
        lines.append("methods: " + ", ".join(f"{name}{signature(own[name])}" for name in methods[:30]))
    return Inspection(bounded(lines), f"class {class_name(cls)}")


def _module(module: Any) -> Inspection:
    held = module_dict(module)
    version = held.get("__version__")
    lines = [f"module {held.get('__name__')}" + (f" {version}" if type(version) is str else "")]
    if type(held.get("__file__")) is str:
        lines.append(str(held["__file__"]))
    lines += _doc(held.get("__doc__"))
    public = [name for name in held if type(name) is str and not name.startswith("_")]
    more = f", … {len(public):,} in all" if len(public) > 80 else ""
    lines.append("names: " + ", ".join(public[:80]) + more)
    return Inspection(bounded(lines), f"module {held.get('__name__')}")


def inspect_object(value: Any) -> Inspection:
    """Anything else: its class, and what it really holds. Nothing is computed, consumed or asked."""
    cls = type(value)
    lines = [f"{full_name(cls)} object: {preview(value, 200)}"]
    if cls is type(os.environ):
        names = ", ".join(sorted(os.environ))
        return Inspection(bounded([*lines, f"variables (values not shown): {names}"]), "environment")
    lines += _special(value, cls)
    held = instance_dict(value)
    slots = _slots(value)
    if held or slots:
        lines.append("holds:")
        for name, item in [*slots, *itertools.islice(items_of(held or {}), 40)]:
            lines.append(f"  {preview(name, 60).strip(chr(39))}: {'…hidden…' if hides(name, item) else _item(item)}")
        if held and dict.__len__(held) > 40:
            lines.append(f"  … {dict.__len__(held) - 40:,} more attributes")
    methods = [
        name
        for base in mro(cls)[:-1]
        for name, item in class_dict(base).items()
        if isinstance_of(item, types.FunctionType)
    ]
    public = [name for name in dict.fromkeys(methods) if not name.startswith("_")]
    if public:
        lines.append(f"methods: {', '.join(public[:40])}" + (" …" if len(public) > 40 else ""))
    return Inspection(bounded(lines), full_name(cls))


def _slots(value: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for base in mro(type(value)):
        for name, descriptor in class_dict(base).items():
            if type(descriptor) is types.MemberDescriptorType and type(name) is str and not name.startswith("__"):
                try:
                    found.append((name, descriptor.__get__(value, type(value))))
                except AttributeError:
                    continue
    return found[:40]


def _special(value: Any, cls: type) -> list[str]:
    """A line for kinds of object that have something better to say than their attributes."""
    if isinstance_of(value, types.GeneratorType):
        frame = value.gi_frame
        state = "finished" if frame is None else f"at line {frame.f_lineno}"
        return [f"generator {value.gi_code.co_name}, {state}; not consumed"]
    if isinstance_of(value, types.CoroutineType):
        return [f"coroutine {value.cr_code.co_name}, not awaited here"]
    root = class_module(cls).partition(".")[0]
    if root in _LAZY and (not _LAZY[root][0] or class_name(cls) == _LAZY[root][0]):
        return [f"It is lazy and was not computed. To see data run {_LAZY[root][1]} with run_code."]
    if root == "matplotlib" and class_name(cls) == "Figure":
        return _figure(value)
    return _estimator(value, cls)


def _figure(figure: Any) -> list[str]:
    width, height = figure.get_size_inches()
    lines = [f"figure of {width:g} × {height:g} inches"]
    for number, axes in enumerate(figure.get_axes()[:10]):
        counts = {"lines": len(axes.lines), "patches": len(axes.patches), "collections": len(axes.collections)}
        drawn = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing drawn"
        title = preview(axes.get_title(), 80)
        lines.append(
            f"  axes {number}: title {title}, x {preview(axes.get_xlabel(), 40)}, "
            f"y {preview(axes.get_ylabel(), 40)}; {drawn}"
        )
    return lines


def _estimator(value: Any, cls: type) -> list[str]:
    """A model in scikit-learn's manner: what it was set to, and whether it has learned."""
    if not any(class_name(base) == "BaseEstimator" for base in mro(cls)):
        return []
    held = instance_dict(value) or {}
    init = class_attribute(cls, "__init__")
    code = init.__code__ if isinstance_of(init, types.FunctionType) else None
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount] if code is not None else ()
    settings = ", ".join(
        f"{name}={preview(held[name], 60)}" for name in names if held.get(name, MISSING) is not MISSING
    )
    learned = [name for name in held if type(name) is str and name.endswith("_") and not name.startswith("_")]
    return [f"parameters: {settings}", f"fitted: {', '.join(learned)}" if learned else "not fitted"]
