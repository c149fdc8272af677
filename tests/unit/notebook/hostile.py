"""Objects that do harm when they are asked anything."""

from __future__ import annotations

from typing import Any


class AskedError(BaseException):
    """Not an Exception, so that nothing can swallow it: somebody ran the object's code."""


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise AskedError


class HostileMeta(type):
    """A metaclass that answers nothing."""

    __getattribute__ = _refuse
    __repr__ = _refuse
    __instancecheck__ = _refuse
    __subclasscheck__ = _refuse
    __eq__ = _refuse
    __hash__ = _refuse


class Hostile:
    """Every special method and every attribute access raises."""

    __repr__ = __str__ = __len__ = __iter__ = __getattribute__ = __getattr__ = __getitem__ = __eq__ = _refuse  # type: ignore[assignment]
    __contains__ = __bool__ = __hash__ = __format__ = __dir__ = __sizeof__ = __reduce__ = _refuse  # type: ignore[assignment]
    __array__ = __dataframe__ = __call__ = _refuse
    __class__ = property(_refuse)  # type: ignore[assignment]
    __dict__ = property(_refuse)  # type: ignore[assignment]
    shape = dtype = columns = nbytes = property(_refuse)


class HostileByMeta(metaclass=HostileMeta):
    """An ordinary object of a hostile class."""


class HostileDict(dict[Any, Any]):
    """A dictionary whose own methods lie."""

    __repr__ = __len__ = __iter__ = __getitem__ = __missing__ = _refuse
    items = keys = values = get = _refuse


class HostileList(list[Any]):
    """A list whose own methods lie."""

    __repr__ = __len__ = __iter__ = __getitem__ = _refuse


class HostileStr(str):
    """A text whose own methods lie."""

    __repr__ = __str__ = __len__ = __iter__ = __getitem__ = _refuse


class HostileInt(int):
    """A number whose own methods lie."""

    __repr__ = __str__ = __index__ = __int__ = bit_length = _refuse  # type: ignore[assignment]


class Lazy:
    """Properties and ``__getattr__`` that must not run, beside real data."""

    def __init__(self) -> None:
        self.real = [1, 2, 3]
        self.path = {"a": {"b": 5}}

    @property
    def computed(self) -> int:
        raise AskedError

    def __getattr__(self, name: str) -> Any:
        raise AskedError

    def __getitem__(self, key: Any) -> Any:
        raise AskedError


def hostile_objects() -> list[Any]:
    """One of each."""
    return [
        Hostile(),
        HostileByMeta(),
        HostileByMeta,
        HostileDict(a=1),
        HostileList([1, 2]),
        HostileStr("text"),
        HostileInt(5),
        Lazy(),
        [Hostile(), HostileByMeta()],
        {"x": Hostile(), "y": HostileDict(z=HostileList([Hostile()]))},
    ]
