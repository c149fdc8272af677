"""The arguments of a tool call: read from JSON, checked against the tool's schema, mended where that is harmless.

What is mended, at the top level only: ``null`` for an optional argument is the same as leaving it out, a string that
spells a number or ``true``/``false`` is taken as such where the schema wants just that type, and ``5.0`` is an integer.
Nothing else is, since a value that looks different to the permission engine than to the tool would be a way around it.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from zq_notebook.errors import ToolArgumentError
from zq_notebook.text import logs
from zq_notebook.text.unicode import well_formed_value

logger = logs.logger("zq_notebook.tools")

JsonSchema = Mapping[str, Any]
Validator = Callable[[Any], Any]

EMPTY_PARAMETERS: JsonSchema = {"type": "object", "properties": {}}
_MAX_SHOWN = 80
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_TYPE_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
}


def function_schema(name: str, description: str, parameters: JsonSchema | None = None) -> dict[str, Any]:
    """A function schema in the form that the model sees (Manual §7.2)."""
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": dict(parameters or EMPTY_PARAMETERS)},
    }


def parameters_of(schema: JsonSchema) -> JsonSchema:
    """The JSON Schema of a tool's arguments, out of its function schema."""
    parameters = schema.get("function", schema).get("parameters")
    return parameters if isinstance(parameters, Mapping) else EMPTY_PARAMETERS


def _show(value: object) -> str:
    """A short description of a value that did not fit: its kind and its beginning."""
    if value is None:
        return "null"
    kind = _TYPE_NAMES.get(type(value), type(value).__name__)
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f"{kind}: {text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + '…'}"


def _expected(schema: JsonSchema) -> str:
    """What a value of this schema looks like, in a few words."""
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(item, ensure_ascii=False) for item in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(_expected(option) for option in schema[key])
    kind = schema.get("type", "any value")
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return f"array of {_expected(schema['items'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def known_arguments(parameters: JsonSchema) -> str:
    """One line that lists the arguments of a tool with their types."""
    properties = parameters.get("properties") or {}
    required = set(parameters.get("required") or ())
    if not properties:
        return "This tool takes no arguments."
    listed = (
        f"{name} ({_expected(schema if isinstance(schema, Mapping) else {})}{', required' if name in required else ''})"
        for name, schema in properties.items()
    )
    return "Its arguments: " + "; ".join(listed) + "."


def parse_json_object(text: str, parameters: JsonSchema) -> dict[str, Any]:
    """The arguments as the model wrote them. Raises :class:`ToolArgumentError` for anything but a JSON object.

    Nothing at all is taken as ``{}`` for a tool that has no arguments; some servers write it that way.
    """
    if not text.strip():
        if not parameters.get("properties"):
            return {}
        raise ToolArgumentError(f"The arguments are empty. Send a JSON object. {known_arguments(parameters)}")
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        value = _decode_leniently(text, parameters)
    if not isinstance(value, dict):
        raise ToolArgumentError(
            f"The arguments must be one JSON object, not {_show(value)}. {known_arguments(parameters)}"
        )
    return value


def _decode_leniently(text: str, parameters: JsonSchema) -> Any:
    """The standard library's reading, which takes lone surrogates, and its clearer messages."""
    try:
        return well_formed_value(json.loads(text, parse_constant=_refuse_constant))
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")
        advice = "they end too early; send them again, shorter if they were cut" if cut else "send valid JSON"
        raise ToolArgumentError(
            f"The arguments are not valid JSON ({error.msg} at character {error.pos + 1} of {len(text)}): {advice}. "
            f"The tool was not run. {known_arguments(parameters)}"
        ) from None
    except (RecursionError, ValueError) as error:
        detail = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ToolArgumentError(f"The arguments cannot be read: {detail}. {known_arguments(parameters)}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


def _refuse_remote(uri: str) -> Any:
    raise ValueError(f"a tool's schema may not refer to {uri}")


def compile_validator(parameters: JsonSchema, name: str) -> Validator | None:
    """A compiled check of the arguments of the tool called ``name``.

    ``None``, and a warning in the log, when the schema itself cannot be used: calls are then made unchecked.
    """
    import fastjsonschema

    remote = dict.fromkeys(("http", "https", "ftp", "file"), _refuse_remote)
    try:
        validator: Validator = fastjsonschema.compile(dict(parameters), handlers=remote, use_default=False)
    except Exception as error:
        # Schemas of other people's tools come in every shape. What fastjsonschema raises is not one exception tree.
        logger.warning(
            "The arguments of the tool %s are not checked: its schema cannot be used (%s: %s). Correct its parameters.",
            *(name, type(error).__name__, error),
        )
        return None
    return validator


def _mended(value: object, schema: JsonSchema) -> object:
    """``value`` as the scalar that the schema wants, where there is only one reading."""
    kind = schema.get("type")
    if isinstance(value, str):
        text = value.strip()
        if kind == "integer" and _INTEGER.fullmatch(text):
            return int(text)
        if kind == "number" and _NUMBER.fullmatch(text):
            return float(text)
        if kind == "boolean" and text.lower() in ("true", "false"):
            return text.lower() == "true"
    elif isinstance(value, float) and kind == "integer" and value.is_integer():
        return int(value)
    return value


def _mend(arguments: Mapping[str, Any], parameters: JsonSchema) -> dict[str, Any]:
    properties = parameters.get("properties") or {}
    required = set(parameters.get("required") or ())
    mended: dict[str, Any] = {}
    for name, value in arguments.items():
        schema = properties.get(name)
        if not isinstance(schema, Mapping):
            mended[name] = value
        elif value is None and name not in required and not _takes_null(schema):
            continue
        else:
            mended[name] = _mended(value, schema)
    return mended


def _takes_null(schema: JsonSchema) -> bool:
    kind = schema.get("type")
    if kind is None:
        options = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
        named = "enum" in schema or "const" in schema or bool(options)
        return not named or None in schema.get("enum", ()) or any(_takes_null(option) for option in options)
    return kind == "null" or (isinstance(kind, list) and "null" in kind)


def check_arguments(
    arguments: Mapping[str, Any], parameters: JsonSchema, validator: Validator | None
) -> dict[str, Any]:
    """The arguments that the tool gets. Raises :class:`ToolArgumentError` when they do not fit the schema."""
    mended = _mend(arguments, parameters)
    if validator is None:
        return mended
    import fastjsonschema

    try:
        validator(mended)
    except fastjsonschema.JsonSchemaValueException as error:
        raise ToolArgumentError(_explain(error, mended, parameters)) from None
    except RecursionError:
        raise ToolArgumentError(f"The arguments are nested too deeply. {known_arguments(parameters)}") from None
    return mended


def _explain(error: Any, arguments: Mapping[str, Any], parameters: JsonSchema) -> str:
    """One paragraph: which argument, what is expected, what came, and the names there are."""
    properties = parameters.get("properties") or {}
    unknown = [name for name in arguments if name not in properties]
    missing = [name for name in parameters.get("required") or () if name not in arguments]
    path = list(getattr(error, "path", ["data"]))[1:]
    parts: list[str] = []
    if not path and missing:
        parts.append("Missing: " + ", ".join(missing) + ".")
    if not path and unknown and (missing or parameters.get("additionalProperties") is False):
        free = [name for name in properties if name not in arguments]
        parts.extend(_unknown(name, free) for name in unknown)
    if not parts:
        name = ".".join(str(part) for part in path) or "The arguments"
        value = getattr(error, "value", None)
        definition = getattr(error, "definition", None)
        expected = _expected(definition) if isinstance(definition, Mapping) and path else ""
        if error.rule in ("type", "enum", "const", "anyOf", "oneOf") and expected:
            parts.append(f"{name} must be {expected}, not {_show(value)}.")
        else:
            message = str(error.message).removeprefix("data.").removeprefix("data")
            parts.append(f"{message.strip() if path else name + ' ' + message.strip()}; it came as {_show(value)}.")
    return f"The arguments do not fit. {' '.join(parts)} {known_arguments(parameters)}"


def _unknown(name: str, free: list[str]) -> str:
    close = difflib.get_close_matches(name.lower(), free, n=1, cutoff=0.6) or [
        candidate for candidate in free if candidate in name.lower().split("_")
    ]
    return f"There is no argument {name}" + (f"; did you mean {close[0]}?" if close else ".")
