"""What a turn did to the user's variables."""

from __future__ import annotations

import gc
import os
import time
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.notebook import hostile
from zq_notebook.notebook.namespace import NamespaceWatch, user_variables

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")


class Box:
    """An object of the notebook."""

    __module__ = "__main__"

    def __init__(self) -> None:
        self.value = 1


def _shell(**names: Any) -> Any:
    return SimpleNamespace(user_ns=dict(names), user_ns_hidden={})


def test_new_changed_and_deleted_are_told_apart() -> None:
    shell = _shell(a=1, b=[1], c="x")
    watch = NamespaceWatch(shell)
    shell.user_ns |= {"a": 2, "d": pd.DataFrame({"x": [1, 2]})}
    del shell.user_ns["c"]
    changes = watch.changes()
    assert (changes.new, changes.changed, changes.deleted) == (("d",), ("a",), ("c",))
    assert changes.descriptions == {"d": "DataFrame 2 × 1", "a": "2"}


def _set(frame: Any, row: int, column: str, value: Any) -> None:
    frame.loc[row, column] = value


def _delete(target: Any, key: Any) -> None:
    del target[key]


CHANGES: list[tuple[str, Callable[[], Any], Callable[[Any], Any]]] = [
    ("list append", lambda: [1, 2], lambda v: v.append(3)),
    ("list item", lambda: list(range(1_000)), lambda v: v.__setitem__(0, "x")),
    ("dict item", lambda: {"a": 1}, lambda v: v.__setitem__("a", 2)),
    ("set", lambda: {1}, lambda v: v.add(2)),
    ("bytearray", lambda: bytearray(b"ab"), lambda v: v.__setitem__(0, 0)),
    ("array", lambda: np.zeros((3, 3)), lambda v: v.__setitem__((1, 1), 5)),
    ("array slice", lambda: np.zeros((6, 6))[::2, ::2], lambda v: v.__setitem__((1, 1), 5)),
    ("array dtype", lambda: np.zeros(3), lambda v: v.fill(1)),
    ("new column", lambda: pd.DataFrame({"a": [1]}), lambda v: v.__setitem__("b", 1)),
    ("renamed column", lambda: pd.DataFrame({"a": [1]}), lambda v: setattr(v, "columns", ["z"])),
    ("one value", lambda: pd.DataFrame({"a": [1, 2]}), lambda v: _set(v, 0, "a", 9)),
    ("one text", lambda: pd.DataFrame({"a": ["x", "y"]}), lambda v: _set(v, 0, "a", "z")),
    ("dropped column", lambda: pd.DataFrame({"a": [1], "b": [2]}), lambda v: _delete(v, "a")),
    ("series", lambda: pd.Series([1, 2]), lambda v: v.__setitem__(0, 5)),
    ("category", lambda: pd.DataFrame({"c": pd.Categorical(["u", "v"])}), lambda v: _set(v, 0, "c", "v")),
    ("attribute", Box, lambda v: setattr(v, "value", 2)),
    ("new attribute", Box, lambda v: setattr(v, "extra", 2)),
]


@pytest.mark.parametrize(("make", "change"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_change_in_place_is_noticed_and_only_when_there_is_one(
    make: Callable[[], Any], change: Callable[[Any], Any]
) -> None:
    shell = _shell(value=make(), other=make())
    watch = NamespaceWatch(shell)
    assert not watch.changes()
    change(shell.user_ns["value"])
    assert watch.changes().changed == ("value",)


UNTOUCHED: list[Any] = [
    pd.DataFrame({"t": pd.date_range("2030", periods=300, tz="Europe/Berlin"), "o": [{"k": [1]}] * 300}),
    pd.DataFrame({"i": pd.array([1, None], dtype="Int64"), "p": pd.period_range("2030", periods=2)}),
    pd.DataFrame({"n": [float("nan"), 1.0], "s": ["a", None], "c": pd.Categorical(["u", None])}),
    pd.DataFrame({"x": np.zeros(3)}, index=pd.MultiIndex.from_tuples([(1, 2), (1, 3), (2, 2)])),
    [float("nan"), "text" * 1_000, (1, 2), {"a": {}}],
    np.array([1, "a", [2]], dtype=object),
    np.array(["2030-01-01", "NaT"], dtype="M8[D]"),
    os,
    print,
    Box,
]


@pytest.mark.parametrize("position", range(len(UNTOUCHED)))
def test_reading_an_object_is_no_change(position: int) -> None:
    value = UNTOUCHED[position]
    shell = _shell(value=value)
    watch = NamespaceWatch(shell, modules=True)
    repr(value)
    if isinstance(value, pd.DataFrame):
        value.describe(include="all")
        value.iloc[0].to_dict()
        value.groupby(value.columns[-1], observed=True).size() if value.shape[1] > 1 and "o" not in value else None
    assert not watch.changes()


def test_equal_plain_value_is_no_change_but_a_new_object_is() -> None:
    shell = _shell(n=10**12, s="a text", f=1.5, rows=[1])
    watch = NamespaceWatch(shell)
    shell.user_ns |= {"n": int("1000000000000"), "s": "".join(["a", " text"]), "f": float("1.5"), "rows": [1]}
    assert watch.changes().changed == ("rows",)


def test_hostile_objects_are_watched_without_asking_them() -> None:
    shell = _shell(**{f"h{n}": value for n, value in enumerate(hostile.hostile_objects())})
    watch = NamespaceWatch(shell)
    assert not watch.changes()
    shell.user_ns["h0"] = hostile.Hostile()
    assert watch.changes().changed == ("h0",)


def test_the_watch_keeps_no_object_alive() -> None:
    shell = _shell(frame=pd.DataFrame({"a": np.zeros(10)}), array=np.zeros(10))
    gone = [weakref.ref(shell.user_ns["frame"]), weakref.ref(shell.user_ns["array"])]
    watch = NamespaceWatch(shell)
    shell.user_ns.clear()
    gc.collect()
    assert [reference() for reference in gone] == [None, None]
    assert watch.changes().deleted == ("frame", "array")


def test_it_takes_no_longer_than_its_budget_with_very_much_data() -> None:
    shell = _shell(
        **{f"frame{n}": pd.DataFrame(np.zeros((1_000, 120))) for n in range(30)},
        **{f"array{n}": np.zeros(200_000) for n in range(30)},
        **{f"list{n}": list(range(10_000)) for n in range(300)},
    )
    NamespaceWatch(_shell(frame=shell.user_ns["frame0"]))
    looks, comparisons = [], []
    for _ in range(3):
        began = time.perf_counter()
        watch = NamespaceWatch(shell)
        middle = time.perf_counter()
        assert not watch.changes()
        looks.append(middle - began)
        comparisons.append(time.perf_counter() - middle)
    # The best of three: on a busy machine any one of them may have had to wait for the processor.
    assert min(looks) < 0.06
    assert min(comparisons) < 0.06


def test_names_of_ipython_are_no_variables() -> None:
    shell = SimpleNamespace(
        user_ns={"In": [], "Out": {}, "_": 1, "_5": 1, "exit": 1, "mine": 1, "hidden": 2, "taken": 3},
        user_ns_hidden={"hidden": 2, "taken": 4},
    )
    assert list(user_variables(shell)) == ["mine", "taken"]
