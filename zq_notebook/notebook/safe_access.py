"""Looking at an object without running any code of its class.

``type(x)`` cannot lie, ``x.__class__`` can; ``x.__dict__`` may be a property, and a metaclass may answer for
``cls.__name__``. So everything here goes through the descriptors of ``type`` and the built-in classes' own methods.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_TYPE_DICT = type.__dict__["__dict__"].__get__
_TYPE_NAME = type.__dict__["__name__"].__get__
_TYPE_MODULE: Any = vars(type)["__module__"].__get__
_TYPE_QUALNAME = type.__dict__["__qualname__"].__get__
_TYPE_MRO = type.__dict__["__mro__"].__get__
_MODULE_DICT: Any = vars(types.ModuleType)["__dict__"].__get__

#: Stands for "there is no such thing", as any object may be a value.
MISSING: Any = object()


def class_name(cls: type) -> str:
    """The bare name of a class."""
    return str(_TYPE_NAME(cls))[:100]


def class_module(cls: type) -> str:
    """The module that defines a class, empty when that is no text."""
    module = _TYPE_MODULE(cls)
    return module if type(module) is str else ""


def full_name(cls: type) -> str:
    """``module.Name``, without the module for builtins and for the notebook's own classes."""
    module = class_module(cls)
    name = str(_TYPE_QUALNAME(cls))[:100]
    return name if module in ("builtins", "__main__", "") else f"{module}.{name}"


def class_dict(cls: type) -> Mapping[str, Any]:
    """The class's own attributes, past any metaclass."""
    return _TYPE_DICT(cls)  # type: ignore[no-any-return]


def mro(cls: type) -> tuple[type, ...]:
    """The classes it inherits from, itself first."""
    return _TYPE_MRO(cls)  # type: ignore[no-any-return]


def class_attribute(cls: type, name: str) -> Any:
    """What the class or one of its bases holds under ``name``, not bound, or :data:`MISSING`."""
    for base in mro(cls):
        found = class_dict(base).get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def instance_dict(value: object) -> dict[Any, Any] | None:
    """The instance's real ``__dict__``, or ``None`` when it has none or its class puts something else in its place."""
    for base in mro(type(value)):
        descriptor = class_dict(base).get("__dict__", MISSING)
        if descriptor is MISSING:
            continue
        if type(descriptor) is not types.GetSetDescriptorType:
            return None
        found = descriptor.__get__(value, type(value))
        return found if isinstance(found, dict) else None
    if isinstance_of(value, types.ModuleType):
        return module_dict(value)
    return None


def module_dict(module: Any) -> dict[str, Any]:
    """A module's names, past its ``__getattr__``."""
    found: dict[str, Any] = _MODULE_DICT(module)
    return found


def items_of(mapping: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """The items that a dictionary really holds, past what a subclass says."""
    return iter(dict.items(mapping))


def one_of(cls: type, classes: Iterable[type]) -> bool:
    """``cls in classes`` by identity: ``==`` and ``hash`` of a class belong to its metaclass."""
    return any(cls is one for one in classes)


def count_types(items: Iterable[object]) -> list[tuple[type, int]]:
    """How often each exact type occurs, the commonest first."""
    classes: dict[int, type] = {}
    counts: dict[int, int] = {}
    for item in items:
        cls = type(item)
        classes[id(cls)] = cls
        counts[id(cls)] = counts.get(id(cls), 0) + 1
    return [(classes[key], count) for key, count in sorted(counts.items(), key=lambda pair: -pair[1])]


def isinstance_of(value: object, cls: type | tuple[type, ...]) -> bool:
    """``isinstance`` that believes only the real type."""
    wanted = cls if isinstance(cls, tuple) else (cls,)
    bases = mro(type(value))
    return any(any(base is one for base in bases) for one in wanted)


def is_genuine(cls: type) -> bool:
    """Whether the class is what its module has under its name, and does not just claim to come from there."""
    module = sys.modules.get(class_module(cls))
    return isinstance_of(module, types.ModuleType) and module_dict(module).get(class_name(cls)) is cls


def is_a(value: object, module: str, *names: str) -> bool:
    """Whether the value's own class is one of these, by module prefix and name: no import of the library needed."""
    cls = type(value)
    if not (class_module(cls) + ".").startswith(module + "."):
        return False
    return (not names or class_name(cls) in names) and is_genuine(cls)


def inherits(value: object, module: str, name: str) -> bool:
    """Whether a class of that library is among the bases."""
    return any(
        class_name(base) == name and (class_module(base) + ".").startswith(module + ".") and is_genuine(base)
        for base in mro(type(value))
    )


def get_item(mapping: dict[Any, Any], key: Any) -> Any:
    """``mapping[key]`` without ``__missing__``, or :data:`MISSING`."""
    return dict.get(mapping, key, MISSING)
