"""Looking at any object: bounded, quick, and without running its code."""

from __future__ import annotations

import datetime
import gc
import os
import time
import tracemalloc
from collections import OrderedDict, defaultdict, deque, namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.notebook import hostile
from zq_notebook.errors import ToolError
from zq_notebook.notebook.fingerprint import fingerprint
from zq_notebook.notebook.inspect_value import inspect_path, inspect_value
from zq_notebook.notebook.safe_repr import preview
from zq_notebook.notebook.value_path import resolve
from zq_notebook.notebook.variable_list import brief, list_variables

np = pytest.importorskip("numpy")
pd = pytest.importorskip("pandas")


def shell_with(**names: Any) -> Any:
    return SimpleNamespace(user_ns=dict(names), user_ns_hidden={})


def _objects(*values: Any) -> Any:
    """An object array, made without asking the objects."""
    array = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        array[position] = value
    return array


@pytest.mark.parametrize("position", range(len(hostile.hostile_objects())))
def test_no_code_of_a_hostile_object_runs(position: int) -> None:
    value = hostile.hostile_objects()[position]
    assert len(inspect_value(value).text) < 9_000
    assert len(preview(value)) <= 80
    assert brief(value, "x").kind
    fingerprint(value)
    assert "x |" in list_variables(shell_with(x=value), "", 10).text


def test_frame_with_hostile_cells_shows_their_types() -> None:
    frame = pd.DataFrame({"o": [0, {"a": 1}, 1], "n": [1, 2, 3]})
    frame["o"].array._ndarray[0] = hostile.Hostile()  # past pandas, which asks an object for its class
    text = inspect_value(frame).text
    assert "Hostile 1" in text
    assert "'n' | int64 | 0 | min 1" in text


def test_class_that_claims_to_be_a_data_frame_is_not_believed() -> None:
    fake = type("DataFrame", (hostile.Hostile,), {"__module__": "pandas"})()
    text = inspect_value(fake).text
    assert "pandas.DataFrame object" in text


def test_cycles_end() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    mapping: dict[str, Any] = {}
    mapping["self"] = mapping
    assert preview(ring) == "[1, …]"
    assert "…" in preview(mapping)
    assert len(inspect_value([ring, mapping]).text) < 1_000


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "None"),
        (3.5, "3.5"),
        pytest.param(10**20_000, "an integer of 66,439 bits", id="huge"),
        ("x" * 1_000, "'xxx"),
        (b"\x00\xff", "b'\\x00\\xff'"),
        ([1, [2, [3, [4]]]], "[1, [2, [3, <list of 1>]]]"),
        ({"a": 1, "openai_api_key": "sk-1"}, "{'a': 1, 'openai_api_key': …hidden…}"),
        (OrderedDict(a=1), "OrderedDict({'a': 1})"),
        (deque([1, 2]), "deque([1, 2])"),
        ((1,), "(1,)"),
        (set(), "set()"),
        (range(3), "range(0, 3)"),
        (datetime.date(2030, 1, 2), "datetime.date(2030, 1, 2)"),
        (Path("/a"), "PosixPath('/a')"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, … 100 items]"),
        (os.environ, "environ of"),
    ],
)
def test_previews(value: object, shown: str) -> None:
    assert preview(value).startswith(shown)


@given(
    st.recursive(
        st.none() | st.integers() | st.floats() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_any_plain_value_is_bounded_and_valid_text(value: object) -> None:
    assert len(preview(value, 60)) <= 60
    text = inspect_value(value).text
    assert len(text) < 9_000
    inspect_path(shell_with(v=value), "v").text.encode()


def test_environment_values_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_SECRET", "do-not-show")
    assert "do-not-show" not in inspect_value(os.environ).text
    assert "SOME_SECRET" in inspect_value(os.environ).text


def test_secret_variables_are_not_shown_in_the_list() -> None:
    text = list_variables(shell_with(api_key="sk-12345", df_password="p", tokens=[1]), "", 10).text
    assert "sk-12345" not in text
    assert "tokens | list | 1" in text


def test_generator_is_not_consumed() -> None:
    generator = (n for n in range(3))
    assert "not consumed" in inspect_value(generator).text
    assert list(generator) == [0, 1, 2]


def test_function_shows_signature_with_safe_defaults_and_first_doc_line() -> None:
    def function(a: int, b: Any = hostile.Hostile(), *rest: int, c: str = "x", **more: int) -> None:  # noqa: B008
        """First line.

        Second.
        """

    text = inspect_value(function).text
    assert "(a, b=<" in text
    assert "*rest, c='x', **more)" in text
    assert "First line." in text
    assert "Second" not in text


def test_estimator_shows_parameters_without_asking_it() -> None:
    class BaseEstimator:
        get_params = hostile.Hostile.__repr__

    class Model(BaseEstimator):
        def __init__(self, alpha: float = 1.0) -> None:
            self.alpha = alpha

    model = Model(0.5)
    assert "parameters: alpha=0.5" in inspect_value(model).text
    assert "not fitted" in inspect_value(model).text
    model.coef_ = np.zeros(3)  # type: ignore[attr-defined]
    assert "fitted: coef_" in inspect_value(model).text


def test_figure_shows_titles_and_what_is_drawn() -> None:
    figures = pytest.importorskip("matplotlib.figure")
    figure = figures.Figure()
    axes = figure.add_subplot()
    axes.plot([1, 2])
    axes.set_title("Sales")
    text = inspect_value(figure).text
    assert "title 'Sales'" in text
    assert "1 lines" in text


# --- tables ---


def test_frame_gives_types_nulls_figures_and_first_rows() -> None:
    frame = pd.DataFrame(
        {
            "n": [1.0, None, 3.0],
            "s": ["a", "a", None],
            "c": pd.Categorical(["u", "v", "u"]),
            "t": pd.date_range("2030-01-01", periods=3, tz="UTC"),
            "i": pd.array([1, None, 3], dtype="Int64"),
            "b": [True, False, True],
        }
    )
    found = inspect_value(frame)
    assert found.summary == "DataFrame 3 × 6"
    for expected in (
        "3 rows × 6 columns",
        "'n' | float64 | 1 | min 1, median 2, mean 2, max 3",
        "1 distinct: 'a' 2",
        "2 categories: 'u' 2, 'v' 1",
        "max 2030-01-03",
        "'i' | Int64 | 1 | min 1",
        "true 2 of 3",
        "first 3 rows",
    ):
        assert expected in found.text
    assert "sample" not in found.text
    assert found.html.startswith("<table>")


def test_html_of_a_frame_is_escaped() -> None:
    found = inspect_value(pd.DataFrame({"<b>": ["<script>alert(1)</script>"]}))
    assert "<script" not in found.html
    assert "<b>" not in found.html


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(),
        pd.DataFrame(columns=["a", "b"]),
        pd.DataFrame(index=[1, 2, 3]),
        pd.DataFrame(np.zeros((3, 3)), columns=["a", "a", "b"]),
        pd.DataFrame(np.zeros((2, 4)), columns=pd.MultiIndex.from_product([["x", "y"], [1, 2]])),
        pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([("k", 1)])),
        pd.DataFrame({0: [1], None: [2], ("t", 1): [3]}),
        pd.DataFrame({"inf": [np.inf, -np.inf, np.nan], "big": [2**62, 1, -(2**62)], "c": [1j, 2j, 3j]}),
        pd.DataFrame({"all_null": [None, None], "nat": [pd.NaT, pd.NaT], "na": pd.array([None, None], dtype="Int64")}),
        pd.DataFrame(
            {"p": pd.period_range("2030", periods=3), "i": pd.interval_range(0, 3), "d": pd.to_timedelta([1, 2, 3])}
        ),
        pd.DataFrame({"mixed": [1, "a", 2.5], "lists": [[1], [2], [3]]}),
        pd.DataFrame({"sparse": pd.arrays.SparseArray([0, 0, 1])}),
        pd.DataFrame({"f16": np.array([1, 2], dtype="float16"), "u64": np.array([2**64 - 1, 0], dtype="uint64")}),
    ],
)
def test_unusual_frames_are_shown_whole(frame: Any) -> None:
    text = inspect_value(frame).text
    assert f"{frame.shape[0]:,} rows × {frame.shape[1]:,} columns" in text
    assert "could not be looked into" not in text
    assert "no figures" not in text


def test_duplicated_column_names_are_pointed_out() -> None:
    assert "more than once: 'a'" in inspect_value(pd.DataFrame(np.zeros((1, 3)), columns=["a", "a", "b"])).text


def test_subclass_of_a_frame_runs_none_of_its_code() -> None:
    class Frame(pd.DataFrame):  # type: ignore[misc]
        def __repr__(self) -> str:
            raise AssertionError

        @property
        def iloc(self) -> Any:
            raise AssertionError

    text = inspect_value(Frame({"a": [1, 2]})).text
    assert "a kind of DataFrame" in text
    assert "'a' | int64" in text


def test_foreign_column_types_are_not_asked() -> None:
    class Dtype(pd.api.extensions.ExtensionDtype):  # type: ignore[misc]
        name = "foreign"
        type = object

        @classmethod
        def construct_array_type(cls) -> type:
            return Values

    class Values(pd.api.extensions.ExtensionArray):  # type: ignore[misc]
        dtype = Dtype()
        asked = 0

        def __len__(self) -> int:
            return 2

        def __getitem__(self, item: Any) -> Any:
            return self if isinstance(item, slice) else hostile.Hostile()

        def isna(self) -> Any:
            raise AssertionError

        nbytes = 0

        def copy(self) -> Any:
            return self

        @classmethod
        def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> Any:
            return cls()

    text = inspect_value(pd.DataFrame({"x": pd.Series(Values()), "n": [1, 2]})).text
    assert "foreign | – | values of a foreign type" in text
    assert "'n' | int64 | 0 | min 1" in text


def test_seventeen_hundred_columns_and_five_megabyte_cells_stay_small_and_quick() -> None:
    frame = pd.DataFrame(np.zeros((4, 1_700)), columns=[f"column_{n}" for n in range(1_700)])
    frame.insert(0, "text", ["x" * 5_000_000] * 4)
    inspect_value(frame.iloc[:, :3])
    began = time.perf_counter()
    found = inspect_value(frame)
    assert time.perf_counter() - began < 0.5
    assert len(found.text) < 8_200
    assert len(found.html) < 20_000
    assert "4 texts longer than 200" in found.text


@pytest.fixture(scope="module")
def ten_million() -> Any:
    rows = 10_000_000
    random = np.random.default_rng(1)
    words = np.array([f"word{n}" for n in range(1_000)], dtype=object)
    return pd.DataFrame(
        {
            "i": np.arange(rows),
            "f": np.where(random.random(rows) < 0.1, np.nan, random.random(rows)),
            "t": pd.date_range("1990", periods=rows, freq="s"),
            "c": pd.Categorical.from_codes(random.integers(0, 3, rows), ["x", "y", "z"]),
            "o": pd.Series(words[random.integers(0, 1_000, rows)], dtype=object),
        }
    )


def test_ten_million_rows_take_little_time_and_memory_and_say_that_they_are_a_sample(ten_million: Any) -> None:
    psutil = pytest.importorskip("psutil")
    inspect_value(ten_million.iloc[:10])
    gc.collect()
    before = psutil.Process().memory_info().rss
    tracemalloc.start()
    inspect_value(ten_million)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert psutil.Process().memory_info().rss - before < 20_000_000
    assert peak < 20_000_000
    began = time.perf_counter()
    text = inspect_value(ten_million).text
    assert time.perf_counter() - began < 0.2
    assert "sample of 20,000 rows" in text
    assert "'f' | float64 | ~10." in text or "'f' | float64 | ~9." in text


def test_listing_and_marking_ten_million_rows_is_quick(ten_million: Any) -> None:
    fingerprint(ten_million)
    began = time.perf_counter()
    assert brief(ten_million).shape == "10000000 × 5"
    assert fingerprint(ten_million) == fingerprint(ten_million)
    assert time.perf_counter() - began < 0.05


# --- arrays ---


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.arange(12.0).reshape(3, 4), "min 0, median 5.5"),
        (np.array([1.0, np.nan]), "NaN: 1 of 2"),
        (np.array([]), "empty"),
        (np.array(5), "min 5"),
        (np.array([True, False]), "true 1 of 2"),
        (np.array(["a", "a"]), "1 distinct: 'a' 2"),
        (_objects(hostile.Hostile(), 1), "Hostile 1"),
        (np.array(["2030-01-01"], dtype="M8[D]"), "max 2030-01-01"),
        (np.zeros(2, dtype=[("x", int), ("y", "U3")]), "field x: int64"),
        (np.ma.array([1, 2], mask=[True, False]), "shape (2,)"),
        (np.arange(24).reshape(2, 3, 4)[:, ::2, ::-1], "min 0"),
    ],
)
def test_arrays(array: Any, expected: str) -> None:
    assert expected in inspect_value(array).text


def test_large_arrays_are_sampled_whatever_their_layout() -> None:
    array = np.arange(4_000_000.0).reshape(2_000, 2_000)[::2].T
    tracemalloc.start()
    text = inspect_value(array).text
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "sample of 100,000 of 2,000,000 values" in text
    assert peak < 20_000_000


# --- paths ---


Point = namedtuple("Point", "x y")


class Slotted:
    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = "slot"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("numbers[1]", 2),
        ("numbers[-1]", 3),
        ("numbers[0:2]", [1, 2]),
        ("nested['a'][0]['b']", 5),
        ("text[2:4]", "cd"),
        ("lazy.real[0]", 1),
        ("lazy.path['a']['b']", 5),
        ("point.y", 8),
        ("slotted.held", "slot"),
        ("missing['there']", 1),
        ("frame['a'][1]", 20),
        ("frame.a.shape", (2,)),
        ("frame.iloc[0]['a']", 10),
        ("array[1, 0]", 2),
        ("  numbers [ 0 ] ", 1),
    ],
)
def test_paths_reach_real_data(path: str, expected: object) -> None:
    names = {
        "numbers": [1, 2, 3],
        "nested": {"a": [{"b": 5}]},
        "text": "abcdef",
        "lazy": hostile.Lazy(),
        "point": Point(7, 8),
        "slotted": Slotted(),
        "missing": defaultdict(list, there=1),
        "frame": pd.DataFrame({"a": [10, 20]}),
        "array": np.arange(4).reshape(2, 2),
    }
    assert resolve(path, names) == expected


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("lazy.computed", "computed when it is read"),
        ("lazy.nothing", "holds no attribute 'nothing' of its own. It holds: real, path"),
        ("lazy['x']", "code of its own"),
        ("hostile.x", "holds no attribute"),
        ("hostile['x']", "code of its own"),
        ("numbers[9]", "has no item 9"),
        ("missing['absent']", "has no key 'absent'"),
        ("numbers[len(numbers)]", "Only literal indexes"),
        ("open('/etc/passwd')", "may not call anything"),
        ("__import__('os').system", "may not call anything"),
        ("numbers +", "is not a path"),
        ("number", "Did you mean numbers"),
        ("", "is not a path"),
        ("(" * 500, "is not a path"),
    ],
)
def test_paths_that_would_run_code_are_refused_with_a_reason(path: str, reason: str) -> None:
    names: dict[str, Any] = {
        "lazy": hostile.Lazy(),
        "hostile": hostile.HostileByMeta(),
        "numbers": [1, 2, 3],
        "missing": defaultdict(list),
    }
    with pytest.raises(ToolError) as refused:
        resolve(path, names)
    assert reason in str(refused.value)
    assert names["missing"] == {}


def test_tool_text_is_bounded() -> None:
    output = inspect_path(shell_with(d={f"key{n}": "v" * 500 for n in range(10_000)}), "d")
    assert len(output.text) < 8_500
    assert output.summary == "dict of 10\u202f000"


# --- the list ---


def test_list_leaves_out_what_ipython_put_there() -> None:
    shell = SimpleNamespace(user_ns={"In": [], "x": 1, "_i1": "", "exit": exit, "hid": 5}, user_ns_hidden={"hid": 5})
    text = list_variables(shell, "", 10).text
    assert "x | int | " in text
    assert "In" not in text
    assert "hid |" not in text


def test_list_filters_by_name_pattern_and_type_and_says_how_many_are_left() -> None:
    shell = shell_with(df_a=pd.DataFrame({"a": [1]}), df_b=1, other="x", os=os)
    assert "other" not in list_variables(shell, "df*", 10).text
    assert "df_a" in list_variables(shell, "dataframe", 10).text
    assert "2 more; use filter" in list_variables(shell, "", 1).text
    assert "No variable matches 'zzz'" in list_variables(shell, "zzz", 10).text
    assert "modules: os" in list_variables(shell, "", 10).text


def test_list_of_thousands_is_bounded_and_quick() -> None:
    shell = shell_with(**{f"v{n}": [n] * 10 for n in range(5_000)})
    began = time.perf_counter()
    output = list_variables(shell, "", 1_000)
    assert time.perf_counter() - began < 0.5
    assert len(output.text) < 26_000
    assert output.summary == "5,000 variables"
