"""The registry: how tools are registered, called, checked and bounded (Manual §7.2)."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
import time
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest

from zq_notebook.errors import ToolError, UsageError
from zq_notebook.permissions.risk import RiskClass
from zq_notebook.toolio import ImageData, ToolContext, ToolOutput
from zq_notebook.tools.registry import ToolMetadata, ToolRegistry

LOW = {"category": "x", "riskLevel": "low", "capabilities": [], "requiresApproval": False}


def schema(name: str = "t", **properties: Any) -> dict[str, Any]:
    required = properties.pop("required", [])
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}}


async def call(func: Any, arguments: Any = "{}", ctx: ToolContext | None = None, **properties: Any) -> ToolOutput:
    registry = ToolRegistry()
    registry.register(func, LOW, schema(**properties))
    return await registry.call("t", arguments, ctx or ToolContext())


# metadata


@pytest.mark.parametrize(
    "given",
    [
        {"category": "b", "riskLevel": "high", "capabilities": ["q"], "requiresApproval": True},
        {"category": "b", "risk_level": "high", "capabilities": ("q",), "requires_approval": True},
        ToolMetadata("b", "high", ("q",), True),
        ToolMetadata(category="b", risk_level="high", capabilities=("q",)),
    ],
)
def test_metadata_in_every_spelling_is_the_same(given: Any) -> None:
    spec = ToolRegistry().register(lambda args: 1, given, schema(), "myapp")
    assert spec.metadata == ToolMetadata("b", "high", ("q",), True)
    assert (spec.name, spec.source, spec.concurrent) == ("t", "myapp", False)


@pytest.mark.parametrize(
    ("metadata", "concurrent"),
    [
        (ToolMetadata("x", "low"), True),
        (ToolMetadata("x", "low", requires_approval=True), False),
        (ToolMetadata("x", "low", interactive=True), False),
        (ToolMetadata("x", "medium", requires_approval=False), False),
        (ToolMetadata("x", "high", risk_class=RiskClass.READ), False),
        (ToolMetadata(), False),
    ],
)
def test_only_low_risk_tools_that_wait_for_nobody_run_beside_others(metadata: ToolMetadata, concurrent: bool) -> None:
    assert ToolRegistry().register(lambda args: 1, metadata, schema()).concurrent is concurrent


def test_approval_that_is_not_mentioned_is_required_unless_the_risk_is_low() -> None:
    assert ToolMetadata("x", "medium").requires_approval is True
    assert ToolMetadata("x", "low").requires_approval is False
    assert ToolMetadata("x", "high", requires_approval=False).requires_approval is False


@pytest.mark.parametrize("given", [{"riskLevel": "extreme"}, {"risk": "low"}, {"capabilities": 3}, {"risk_class": "x"}])
def test_metadata_that_cannot_be_used_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ToolRegistry().register(lambda args: 1, given, schema())


# registering


def test_order_replacing_hiding_and_removing() -> None:
    registry = ToolRegistry()
    for name in ("a", "b", "c"):
        registry.register(lambda args: 1, LOW, schema(name))
    first = registry.schemas()
    assert registry.schemas() is first
    assert registry.disable("b")
    assert registry.names() == ["a", "c"]
    assert [item["function"]["name"] for item in registry.schemas()] == ["a", "c"]
    assert registry.get("b") is not None
    assert registry.enable("b")
    registry.register(lambda args: 2, LOW, schema("a"))
    assert registry.names() == ["a", "b", "c"]
    assert registry.remove("a")
    assert not registry.remove("a")
    assert not registry.disable("zzz")
    assert registry.names() == ["b", "c"]
    assert "a" not in registry
    assert len(registry) == 2


@pytest.mark.parametrize("name", ["", "has space", "ünïcode", "x" * 65, "a.b", 3])
def test_name_that_models_do_not_accept_is_refused(name: Any) -> None:
    with pytest.raises(UsageError, match="cannot be a tool's name"):
        ToolRegistry().register(lambda args: 1, LOW, schema(name))


def test_without_a_schema_the_function_names_the_tool() -> None:
    def look_up(args: dict[str, Any]) -> str:
        """Look it up."""
        return "x"

    spec = ToolRegistry().register(look_up, LOW)
    assert spec.schema["function"] == {
        "name": "look_up",
        "description": "Look it up.",
        "parameters": {"type": "object", "properties": {}},
    }


async def test_disabled_and_unknown_tools_are_explained() -> None:
    registry = ToolRegistry()
    registry.register(lambda args: 1, LOW, schema("read_file"))
    registry.register(lambda args: 1, LOW, schema("off"))
    registry.disable("off")
    for name, says in (
        ("read_fil", "Did you mean read_file?"),
        ("off", "switched off"),
        ("zzz", "The tools are: read_file"),
    ):
        output = await registry.call(name, "{}", ToolContext())
        assert (output.ok, output.error_type) == (False, "UnknownToolError")
        assert says in output.text


# how functions are called


class Callable_:
    async def __call__(self, args: dict[str, Any], ctx: ToolContext) -> str:
        return f"{args['x']} {ctx.tool_call_id}"


async def _async(args: dict[str, Any], ctx: ToolContext) -> str:
    return f"{args['x']} {ctx.tool_call_id}"


def _returns_awaitable(args: dict[str, Any], ctx: ToolContext) -> Any:
    return _async(args, ctx)


@pytest.mark.parametrize(
    "func",
    [
        lambda args, ctx: f"{args['x']} {ctx.tool_call_id}",
        lambda args, ctx=None: f"{args['x']} {ctx.tool_call_id}",
        lambda *both: f"{both[0]['x']} {both[1].tool_call_id}",
        lambda args, *, ctx: f"{args['x']} {ctx.tool_call_id}",
        lambda first, args, ctx: f"{args['x']} {ctx.tool_call_id}",
        _async,
        Callable_(),
        _returns_awaitable,
        partial(_async),
    ],
)
async def test_every_form_of_function_gets_arguments_and_context(func: Any) -> None:
    if getattr(func, "__code__", None) is not None and func.__code__.co_varnames[:1] == ("first",):
        func = partial(func, "bound")
    output = await call(func, {"x": 1}, ToolContext(tool_call_id="c1"))
    assert output.text == "1 c1"


async def test_function_without_context_or_arguments() -> None:
    assert (await call(lambda args: args["x"], {"x": "a"})).text == "a"
    assert (await call(lambda: "nothing needed", {"x": "a"})).text == "nothing needed"
    assert (await call(lambda args, retries=3: retries, {})).text == "3"


async def test_context_variables_reach_the_thread() -> None:
    variable = contextvars.ContextVar("variable", default="lost")
    variable.set("kept")
    assert (await call(lambda args: variable.get())).text == "kept"


async def test_synchronous_tools_leave_the_loop_alone_and_run_together() -> None:
    registry = ToolRegistry()
    loop_thread = threading.get_ident()
    threads: set[int] = set()
    barrier = threading.Barrier(16, timeout=5)

    def wait(args: dict[str, Any]) -> str:
        threads.add(threading.get_ident())
        barrier.wait()
        return "x"

    registry.register(wait, LOW, schema())
    outputs = await asyncio.gather(*(registry.call("t", "{}", ToolContext()) for _ in range(16)))
    assert all(output.ok for output in outputs)
    assert len(threads) == 16
    assert loop_thread not in threads


async def test_eight_blocking_tools_of_50_ms_take_little_more_than_one() -> None:
    registry = ToolRegistry()
    never = threading.Event()
    registry.register(lambda args: never.wait(0.05), LOW, schema())
    times = []
    for _ in range(5):
        started = time.perf_counter()
        await asyncio.gather(*(registry.call("t", "{}", ToolContext()) for _ in range(8)))
        times.append(time.perf_counter() - started)
    assert min(times) <= 0.075


async def test_more_jobs_than_threads_all_get_done() -> None:
    registry = ToolRegistry()
    never = threading.Event()
    registry.register(lambda args: never.wait(0.001), LOW, schema())
    for _ in range(3):
        outputs = await asyncio.gather(*(registry.call("t", "{}", ToolContext()) for _ in range(300)))
        assert all(output.ok for output in outputs)


# results


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (3, "3"),
        ({"a": [1, 2.5, None]}, '{"a":[1,2.5,null]}'),
        ((1, "ü"), '[1,"ü"]'),
        ({"a": float("nan")}, '{"a":null}'),
        ({1: {2: 3}}, '{"1":{"2":3}}'),
        ({(1, 2): 3}, '{"(1, 2)":3}'),
        (2**100, str(2**100)),
        ("lone \ud800 x", "lone \ufffd x"),
        ("\ud83c\udf89", "🎉"),
        ({"k\ud800": "\udfff"}, '{"k\ufffd":"\ufffd"}'),
        (ToolOutput(text="x\ud800"), "x\ufffd"),
    ],
)
async def test_any_value_becomes_text(value: Any, text: str) -> None:
    output = await call(lambda args: value)
    assert (output.ok, output.text) == (True, text)


async def test_objects_that_json_cannot_take_become_bounded_text() -> None:
    class Odd:
        def __str__(self) -> str:
            return "o" * 100_000

    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no")

    circle: list[Any] = []
    circle.append(circle)
    output = await call(lambda args: {"odd": Odd(), "broken": Broken(), "circle": circle})
    decoded = json.loads(output.text)
    assert len(decoded["odd"]) == 2000
    assert "RuntimeError" in decoded["broken"]
    assert output.ok


async def test_structured_output_goes_through_untouched() -> None:
    given = ToolOutput(text="t", images=(ImageData(b"x"),), summary="s", display={"text/plain": "p"})
    output = await call(lambda args: given)
    assert output == given


@pytest.mark.parametrize(
    ("value", "ok", "kind"),
    [
        ({"error": "no"}, False, "ToolError"),
        ({"error": "no", "error_type": "Busy"}, False, "Busy"),
        ({"error": ""}, True, None),
        ({"error": None, "x": 1}, True, None),
        ({"error": False}, True, None),
        ({"error": True}, False, "ToolError"),
    ],
)
async def test_mapping_with_an_error_counts_as_one(value: Any, ok: bool, kind: str | None) -> None:
    output = await call(lambda args: value)
    assert (output.ok, output.error_type) == (ok, kind)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad"), "bad"),
        (ToolError("say what"), "say what"),
        (KeyError("k"), "'k'"),
        (StopIteration("s"), "s"),
        (RuntimeError(), "RuntimeError"),
        (ValueError("x\ud800"), "x\ufffd"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (SystemExit(2), "2"),
        (MemoryError(), "MemoryError"),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_exception_becomes_a_result(error: BaseException, text: str, kind: str) -> None:
    if kind == "async" and isinstance(error, StopIteration):
        return

    def raises(args: dict[str, Any]) -> None:
        raise error

    async def raises_later(args: dict[str, Any]) -> None:
        raise error

    output = await call(raises if kind == "plain" else raises_later)
    assert not output.ok
    assert output.error_type == type(error).__name__
    assert json.loads(output.text) == {"error": text, "error_type": type(error).__name__}


async def test_cancellation_is_never_swallowed() -> None:
    started = asyncio.Event()

    async def waits(args: dict[str, Any]) -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(call(waits))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    def cancels(args: dict[str, Any]) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await call(cancels)


# arguments


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("null", "must be one JSON object, not null"),
        ("", "The arguments are empty"),
        ("  \n", "The arguments are empty"),
        ("[]", "not a list"),
        ('"x"', "not a string"),
        ("5", "not an integer"),
        ("true", "not a boolean"),
        ('{"path": "a', "end too early"),
        ('{"path": "a"', "end too early"),
        ('{"path":', "end too early"),
        ("{'path': 'a'}", "not valid JSON"),
        ('{"path": NaN}', "NaN"),
        ('{"path": "a"} trailing', "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 5000, "nested too deeply"),
        ("{}", "Missing: path."),
        ('{"file": "a"}', "There is no argument file"),
        ('{"pth": "a"}', "did you mean path?"),
        ('{"file_path": "a"}', "did you mean path?"),
        ('{"path": 5}', "path must be string, not an integer: 5"),
        ('{"path": ["a"]}', "path must be string, not a list"),
        ('{"path": null}', "path must be string, not null"),
        ('{"path": "a", "lines": "many"}', 'lines must be integer, not a string: "many"'),
        ('{"path": "a", "lines": 1.5}', "lines must be integer"),
        ('{"path": "a", "lines": 0}', "lines"),
        ('{"path": "a", "mode": "z"}', 'mode must be one of "r", "w"'),
        ('{"path": "a", "tags": [1]}', "tags.0 must be string"),
        ('{"path": "a", "extra": 1}', "There is no argument extra"),
    ],
)
async def test_arguments_that_do_not_fit_are_explained_and_the_tool_is_not_run(arguments: str, says: str) -> None:
    registry = ToolRegistry()
    ran = []
    strict = schema(
        path={"type": "string"},
        lines={"type": "integer", "minimum": 1},
        mode={"enum": ["r", "w"]},
        tags={"type": "array", "items": {"type": "string"}},
        required=["path"],
    )
    strict["function"]["parameters"]["additionalProperties"] = False
    registry.register(ran.append, LOW, strict)
    output = await registry.call("t", arguments, ToolContext())
    assert (output.ok, output.error_type) == (False, "ToolArgumentError")
    message = json.loads(output.text)["error"]
    assert says in message
    assert "path (string, required)" in message
    assert ran == []
    assert len(message) < 1200


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"n": "5"}, {"n": 5}),
        ({"n": " -5 "}, {"n": -5}),
        ({"n": 5.0}, {"n": 5}),
        ({"f": "2.5"}, {"f": 2.5}),
        ({"b": "true"}, {"b": True}),
        ({"b": "False"}, {"b": False}),
        ({"s": None}, {}),
        ({"either": None}, {"either": None}),
        ({"s": "5"}, {"s": "5"}),
        ({"either": "5"}, {"either": "5"}),
        ({"unknown": None}, {"unknown": None}),
        ({"s": "\ud800"}, {"s": "\ud800"}),
    ],
)
async def test_only_unambiguous_values_are_mended(given: dict[str, Any], taken: dict[str, Any]) -> None:
    seen: list[dict[str, Any]] = []
    properties = {
        "n": {"type": "integer"},
        "f": {"type": "number"},
        "b": {"type": "boolean"},
        "s": {"type": "string"},
        "either": {"type": ["string", "null"]},
    }
    output = await call(lambda args: seen.append(args), given, **properties)
    assert output.ok, output.text
    assert [{key: (value, type(value)) for key, value in item.items()} for item in seen] == [
        {key: (value, type(value)) for key, value in taken.items()}
    ]


@pytest.mark.parametrize("given", [{"n": "5x"}, {"n": ""}, {"b": "yes"}, {"l": '["a"]'}, {"o": "{}"}, {"n": True}])
async def test_ambiguous_values_are_not_mended(given: dict[str, Any]) -> None:
    properties = {
        "n": {"type": "integer"},
        "b": {"type": "boolean"},
        "l": {"type": "array"},
        "o": {"type": "object"},
    }
    assert (await call(lambda args: "ran", given, **properties)).error_type == "ToolArgumentError"


async def test_nothing_at_all_is_no_arguments_for_a_tool_without_any() -> None:
    assert (await call(lambda args: args, "")).text == "{}"


async def test_lone_surrogates_in_arguments_are_repaired() -> None:
    assert (
        await call(lambda args: args["s"], '{"s": "a\\ud800b \\ud83c\\udf89"}', s={"type": "string"})
    ).text == "a\ufffdb 🎉"


async def test_schema_that_cannot_be_compiled_does_not_keep_a_tool_from_running() -> None:
    assert (await call(lambda args: "ran", {"a": 1}, a={"$ref": "http://127.0.0.1:9/x"})).text == "ran"
    assert (await call(lambda args: "ran", {"a": 1}, a={"type": "nonsense"})).text == "ran"


async def test_schema_that_cannot_be_compiled_is_reported_once_with_the_name_of_its_tool(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = ToolRegistry()
    registry.register(lambda args: "ran", LOW, schema("odd_tool", a={"type": "nonsense"}))
    for _ in range(2):
        assert (await registry.call("odd_tool", {"a": 1}, ToolContext())).text == "ran"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "odd_tool" in caplog.text


def test_parsed_arguments_are_what_the_permission_engine_should_see() -> None:
    spec = ToolRegistry().register(lambda args: 1, LOW, schema(n={"type": "integer"}))
    assert spec.parse('{"n": "5"}') == {"n": 5}


# the decorator


class Color(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    deep: bool


def google(path: str, count: int = 3, color: Color = Color.RED, ctx: ToolContext | None = None) -> str:
    """Do a thing.

    In two paragraphs.

    Args:
        path: Where
            it is.
        count (int): How many: a number.
        color: Which.

    Returns:
        path: not this.
    """
    return f"{path} {count} {color.name} {ctx is not None}"


def numpy(path: str, count: int = 3, color: Color = Color.RED, *, ctx: ToolContext) -> str:
    """Do a thing.

    In two paragraphs.

    Parameters
    ----------
    path : str
        Where
        it is.
    count : int, optional
        How many: a number.
    color
        Which.

    Returns
    -------
    str
        path
    """
    return f"{path} {count} {color.name} {ctx is not None}"


async def sphinx(ctx: ToolContext, path: str, count: int = 3, color: Color = Color.RED) -> str:
    """Do a thing.

    In two paragraphs.

    :param path: Where
        it is.
    :param int count: How many: a number.
    :param color: Which.
    :returns: path
    """
    return f"{path} {count} {color.name} {ctx is not None}"


@pytest.mark.parametrize("func", [google, numpy, sphinx])
async def test_schema_from_hints_and_docstring(func: Any) -> None:
    registry = ToolRegistry()
    assert registry.tool(category="x", risk_level="low", name="t")(func) is func
    assert registry.schemas()[0]["function"] == {
        "name": "t",
        "description": "Do a thing.\n\nIn two paragraphs.",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where it is."},
                "count": {"type": "integer", "default": 3, "description": "How many: a number."},
                "color": {"enum": ["blue", "red"], "default": "red", "description": "Which."},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    }
    assert (await registry.call("t", '{"path": "p", "color": "blue"}', ToolContext())).text == "p 3 BLUE True"
    assert "did you mean count?" in (await registry.call("t", '{"path": "p", "cout": 1}', ToolContext())).text


async def test_decorator_without_parentheses_registers_a_tool_that_is_asked_for() -> None:
    registry = ToolRegistry()

    @registry.tool
    def double(number: int) -> int:
        """Twice the number."""
        return 2 * number

    assert double(2) == 4
    assert registry.names() == ["double"]
    spec = registry.get("double")
    assert spec is not None
    assert spec.metadata == ToolMetadata()
    assert (await registry.call("double", '{"number": 4}', ToolContext())).text == "8"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"risk_level": "lowest"}, "The risk_level of a tool must be 'low', 'medium' or 'high', not 'lowest'."),
        ({"riskLevel": ["low"]}, "The risk_level of a tool must be 'low', 'medium' or 'high', not ['low']."),
        (
            {"risk_class": "raed"},
            "The risk_class of a tool must be 'read', 'write', 'execute' or 'external', not 'raed'.",
        ),
    ],
)
def test_metadata_that_is_none_of_the_choices_lists_them(fields: dict[str, Any], message: str) -> None:
    registry = ToolRegistry()
    with pytest.raises(UsageError) as raised:
        registry.tool(**fields)(lambda: 1)
    assert str(raised.value) == message
    assert registry.names() == []


def test_text_in_place_of_metadata_is_refused_with_a_sentence() -> None:
    with pytest.raises(UsageError, match="dictionary of its fields, not 'low'"):
        ToolRegistry().tool("low")(lambda: 1)  # type: ignore[call-overload]


async def test_rich_types_are_described_and_converted() -> None:
    registry = ToolRegistry()

    @registry.tool(LOW)
    def t(
        point: Point,
        kind: Literal["a", "b"],
        many: list[Point],
        table: dict[str, float],
        maybe: Optional[int] = None,  # noqa: UP045
        options: Options | None = None,
        noted: Annotated[str, "A note"] = "n",
        anything: Any = None,
        unknown: threading.Event | None = None,
        **rest: str,
    ) -> str:
        """T."""
        return repr((point, kind, many, table, maybe, options, noted, anything))

    properties = registry.schemas()[0]["function"]["parameters"]["properties"]
    assert properties["point"]["required"] == ["x"]
    assert properties["kind"] == {"enum": ["a", "b"]}
    assert properties["many"]["items"]["properties"]["x"] == {"type": "integer"}
    assert properties["table"]["additionalProperties"] == {"type": "number"}
    assert properties["noted"] == {"type": "string", "description": "A note", "default": "n"}
    assert properties["anything"] == {}
    assert "rest" not in properties
    assert "$ref" not in json.dumps(properties)
    output = await registry.call(
        "t",
        {"point": {"x": 1}, "kind": "a", "many": [{"x": 2, "y": 3}], "table": {"k": 1}, "options": {"deep": True}},
        ToolContext(),
    )
    assert output.text == repr((Point(1), "a", [Point(2, 3)], {"k": 1.0}, None, {"deep": True}, "n", None))
    wrong = await registry.call("t", {"point": {"x": "1x"}, "kind": "a", "many": [], "table": {}}, ToolContext())
    assert (wrong.ok, wrong.error_type) == (False, "ToolArgumentError")


# the budget


@pytest.mark.parametrize("variable", ["TOOL_RESULT_MAX_CHARS", "TOOL_RESULT_SAVE_THRESHOLD"])
async def test_long_result_is_saved_and_shortened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1000")
    monkeypatch.setenv("TOOL_RESULT_DIR", str(tmp_path / "results"))
    text = "".join(f"line {i}\n" for i in range(1000))
    output = await call(lambda args: text)
    (saved,) = (tmp_path / "results").glob("*")
    assert saved.read_text() == text
    assert saved.stat().st_mode & 0o777 == 0o600
    assert output.text.startswith("line 0\n")
    assert output.text.endswith("line 999\n")
    assert f"{saved}; read more with read_file" in output.text
    assert len(output.text) <= 1000
    assert (await call(lambda args: "x" * 1000)).text == "x" * 1000


async def test_engines_directory_wins_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_RESULT_MAX_CHARS", "500")
    monkeypatch.setenv("TOOL_RESULT_DIR", str(tmp_path / "other"))
    ctx = ToolContext(result_dir=tmp_path / "mine", tool_call_id="../../call")
    await asyncio.gather(*(call(lambda args: "ü" * 5000, "{}", ctx) for _ in range(5)))
    assert len(list((tmp_path / "mine").glob("*"))) == 5
    assert not (tmp_path / "other").exists()


async def test_result_that_cannot_be_saved_is_shortened_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    output = await call(lambda args: "x" * 100_000, "{}", ToolContext(result_dir=tmp_path / "file"))
    assert output.ok
    assert "The rest is lost" in output.text
    assert len(output.text) <= 30_000


@pytest.mark.parametrize("value", ["", "many", "-5", "0"])
async def test_unusable_limit_counts_as_none(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("TOOL_RESULT_MAX_CHARS", value)
    assert len((await call(lambda args: "x" * 20_000)).text) == 20_000


def test_closing_ends_everything_although_one_tool_fails(caplog: pytest.LogCaptureFixture) -> None:
    registry, ended = ToolRegistry(), []

    def fails() -> None:
        raise OSError("still busy")

    registry.on_close(fails)
    registry.on_close(lambda: ended.append("second"))
    registry.close()
    assert ended == ["second"]
    assert "still busy" in caplog.text
