"""A tool from an ordinary function: the schema from its type hints and docstring, values converted on the way in."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from zq_notebook.errors import ToolArgumentError, UsageError
from zq_notebook.toolio import ToolContext
from zq_notebook.tools.calling import is_context_parameter, is_coroutine_function
from zq_notebook.tools.docstring import parse_docstring
from zq_notebook.tools.schema import function_schema

_EMPTY = inspect.Parameter.empty


class DerivedTool(msgspec.Struct, frozen=True):
    """The function schema, and the function in the form ``call(args, ctx)``."""

    schema: dict[str, Any]
    call: Callable[..., Any]


def _resolved(schema: Any, definitions: Mapping[str, Any], seen: tuple[str, ...] = ()) -> Any:
    """``schema`` with its references written out; not every server follows ``$ref``. Recursion ends in any object."""
    if isinstance(schema, list):
        return [_resolved(item, definitions, seen) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.rsplit("/", 1)[-1]
        if name in seen or name not in definitions:
            return {"type": "object"}
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_resolved(definitions[name], definitions, (*seen, name)), **rest}
    return {key: _resolved(value, definitions, seen) for key, value in schema.items() if key != "title"}


def type_schema(hint: Any) -> dict[str, Any]:
    """The JSON Schema of a type hint; ``{}`` (anything) for a type that JSON does not know."""
    if hint in (Any, _EMPTY, object):
        return {}
    try:
        (schema,), definitions = msgspec.json.schema_components([hint], ref_template="#/$defs/{name}")
    except (TypeError, RuntimeError, NotImplementedError):
        return {}
    resolved = _resolved(schema, definitions)
    return resolved if isinstance(resolved, dict) else {}


def _without_doc(hint: Any) -> tuple[Any, str]:
    """A hint without ``Annotated[…, "text"]``, and the text."""
    if typing.get_origin(hint) is Annotated:
        base, *extras = typing.get_args(hint)
        text = next((extra for extra in extras if isinstance(extra, str)), "")
        others = tuple(extra for extra in extras if isinstance(extra, msgspec.Meta))
        return (Annotated[(base, *others)] if others else base), text
    return hint, ""


def _hints(func: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(func, include_extras=True)
    except Exception:
        # A hint that names something only known to a type checker leaves that tool without hints, not without a schema.
        return {}


def _default(parameter: inspect.Parameter) -> Any:
    """The default in JSON form, or ``_EMPTY`` when there is none to show."""
    if parameter.default in (_EMPTY, None):
        return _EMPTY
    try:
        return msgspec.to_builtins(parameter.default)
    except (TypeError, ValueError):
        return _EMPTY


def _convert(value: Any, hint: Any, name: str) -> Any:
    """A validated JSON value as the type that the function asks for."""
    try:
        return msgspec.convert(value, hint, strict=False)
    except msgspec.ValidationError as error:
        raise ToolArgumentError(f"The argument {name} does not fit: {error}.") from None
    except (TypeError, NotImplementedError):
        return value


def _parameters(func: Callable[..., Any]) -> tuple[list[inspect.Parameter], str | None]:
    """The parameters that the model fills in, and the name of the one for the context."""
    shown: list[inspect.Parameter] = []
    context: str | None = None
    for parameter in inspect.signature(func).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if is_context_parameter(parameter):
            context = parameter.name
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            raise UsageError(f"The parameter {parameter.name} of a tool must not be positional-only.")
        else:
            shown.append(parameter)
    return shown, context


def derive_tool(func: Callable[..., Any], *, name: str | None = None, description: str | None = None) -> DerivedTool:
    """The schema of ``func`` and a wrapper that calls it by keyword. Raises :class:`UsageError`.

    Descriptions come from the docstring (Google, NumPy or Sphinx style) or from ``Annotated[T, "text"]``.
    """
    shown, context = _parameters(func)
    hints = _hints(func)
    summary, documented = parse_docstring(inspect.getdoc(func))
    properties: dict[str, Any] = {}
    types: dict[str, Any] = {}
    for parameter in shown:
        hint, text = _without_doc(hints.get(parameter.name, Any))
        schema = type_schema(hint)
        if text or documented.get(parameter.name):
            schema["description"] = text or documented[parameter.name]
        default = _default(parameter)
        if default is not _EMPTY:
            schema.setdefault("default", default)
        properties[parameter.name] = schema
        if schema and hint is not Any:
            types[parameter.name] = hint
    required = [parameter.name for parameter in shown if parameter.default is _EMPTY]
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    call = _wrapper(func, types, context)
    tool_name = name or getattr(func, "__name__", type(func).__name__)
    return DerivedTool(function_schema(str(tool_name), description or summary, parameters), call)


def _wrapper(func: Callable[..., Any], types: Mapping[str, Any], context: str | None) -> Callable[..., Any]:
    def keywords(args: Mapping[str, Any], ctx: ToolContext) -> dict[str, Any]:
        given = {key: _convert(value, types[key], key) if key in types else value for key, value in args.items()}
        return given | ({context: ctx} if context else {})

    if is_coroutine_function(func):

        async def call_async(args: Mapping[str, Any], ctx: ToolContext) -> Any:
            return await func(**keywords(args, ctx))

        return call_async

    def call(args: Mapping[str, Any], ctx: ToolContext) -> Any:
        return func(**keywords(args, ctx))

    # Not functools.wraps: inspect would then see the wrapped function's own parameters.
    functools.update_wrapper(call, func, assigned=("__name__", "__doc__"), updated=())
    del call.__wrapped__  # type: ignore[attr-defined]
    return call
