"""The user's variables, and what became of them during a turn."""

from __future__ import annotations

import time
import types
import weakref
from typing import Any

import msgspec

from zq_notebook.notebook.fingerprint import Mark, fingerprint
from zq_notebook.notebook.safe_access import MISSING, isinstance_of, one_of

_BUDGET = 0.020
_SMALL = 10_000


def user_variables(shell: Any, *, private: bool = False) -> dict[str, Any]:
    """Name and object of everything the user (or the agent) defined, in order; IPython's own names are left out.

    ``private`` includes names that begin with an underscore.
    """
    hidden = getattr(shell, "user_ns_hidden", {})
    names: dict[str, Any] = {}
    for name, value in list(shell.user_ns.items()):
        if type(name) is not str or (name.startswith("_") and not private):
            continue
        if hidden.get(name, MISSING) is value or name in _IPYTHON:
            continue
        names[name] = value
    return names


_IPYTHON = frozenset({"In", "Out", "exit", "quit", "get_ipython", "open", "_ih", "_oh", "_dh", "_i", "_ii", "_iii"})


class NamespaceChanges(msgspec.Struct, frozen=True):
    """Names of variables that are new, changed (bound anew or modified in place) or deleted, in order of definition.

    ``descriptions`` has a few words for each new and changed one ("DataFrame 48210 × 9").
    """

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    descriptions: dict[str, str] = msgspec.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.deleted)


class _Seen(msgspec.Struct):
    """How a variable was: what tells whether it is still the same object, and its mark."""

    identity: int
    kind: type
    reference: Any
    mark: Mark | None


class NamespaceWatch:
    """Made on the main thread when a turn begins; :meth:`changes` tells what happened since.

    Takes at most about 20 ms each time: objects for which there was no time are compared by identity only. Holds weak
    references, and strong ones only to small objects that cannot be referred to weakly; nothing is copied.
    ``modules`` says whether imported modules count.
    """

    def __init__(self, shell: Any, *, modules: bool = False) -> None:
        self._shell = shell
        self._modules = modules
        self._before = self._look()

    def changes(self) -> NamespaceChanges:
        """What is different from when the watch was made. May be asked again and again."""
        from zq_notebook.notebook.variable_list import describe_briefly

        now = self._variables()
        before = self._before
        new = [name for name in now if name not in before]
        deleted = [name for name in before if name not in now]
        changed = []
        deadline = time.perf_counter() + _BUDGET
        for name, value in now.items():
            seen = before.get(name)
            if seen is not None and self._differs(seen, value, deadline):
                changed.append(name)
        told = {name: describe_briefly(now[name]) for name in (*new, *changed)}
        return NamespaceChanges(tuple(new), tuple(changed), tuple(deleted), told)

    def _variables(self) -> dict[str, Any]:
        found = user_variables(self._shell)
        if self._modules:
            return found
        return {name: value for name, value in found.items() if not isinstance_of(value, types.ModuleType)}

    def _look(self) -> dict[str, _Seen]:
        deadline = time.perf_counter() + _BUDGET
        seen: dict[str, _Seen] = {}
        for name, value in self._variables().items():
            mark = fingerprint(value) if time.perf_counter() < deadline else None
            seen[name] = _Seen(id(value), type(value), _reference(value), mark)
        return seen

    @staticmethod
    def _differs(seen: _Seen, value: Any, deadline: float) -> bool:
        if seen.identity != id(value) or seen.kind is not type(value):
            return not _same_plain(seen, value)
        if isinstance(seen.reference, weakref.ref) and seen.reference() is None:
            return True  # another object lives where the old one was
        if seen.mark is None or time.perf_counter() > deadline:
            return False
        mark = fingerprint(value)
        return mark is not None and mark != seen.mark


def _reference(value: Any) -> Any:
    """Something that notices when the object is gone, without keeping anything large alive."""
    kind = type(value)
    if one_of(kind, (int, float, bool, complex, type(None))):
        return value
    if kind is str or kind is bytes:
        return value if len(value) <= _SMALL else None
    try:
        return weakref.ref(value)
    except TypeError:
        return None


def _same_plain(seen: _Seen, value: Any) -> bool:
    """``n = 5`` again is no change, though it may be another object."""
    kind = type(value)
    if seen.kind is not kind or not one_of(kind, (int, float, bool, complex, str, bytes)):
        return False
    return seen.reference is not None and bool(seen.reference == value)
