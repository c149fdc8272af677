"""The tools that the model may call (Manual §7)."""

from __future__ import annotations

import asyncio
import difflib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

import msgspec

from zq_notebook.errors import ToolArgumentError, UsageError
from zq_notebook.permissions.risk import RiskClass
from zq_notebook.text import logs
from zq_notebook.toolio import ToolContext, ToolOutput
from zq_notebook.tools import budget
from zq_notebook.tools.calling import Passing, bind, is_coroutine_function, passing_of
from zq_notebook.tools.derive import derive_tool
from zq_notebook.tools.encode import as_output, error_output, output_of_exception
from zq_notebook.tools.masking import masked
from zq_notebook.tools.schema import (
    JsonSchema,
    Validator,
    check_arguments,
    compile_validator,
    function_schema,
    parameters_of,
    parse_json_object,
)
from zq_notebook.tools.workers import run_in_thread

logger = logs.logger("zq_notebook.tools")

F = TypeVar("F", bound=Callable[..., Any])
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
RiskLevel = Literal["low", "medium", "high"]
_CHOICES = {"risk_level": ("low", "medium", "high"), "risk_class": tuple(RiskClass)}
_FIELDS = {
    "category": "category",
    "riskLevel": "risk_level",
    "risk_level": "risk_level",
    "capabilities": "capabilities",
    "requiresApproval": "requires_approval",
    "requires_approval": "requires_approval",
    "riskClass": "risk_class",
    "risk_class": "risk_class",
    "interactive": "interactive",
}


class ToolMetadata(msgspec.Struct, frozen=True):
    """What the permission engine and the dispatcher need to know about a tool (Manual §7.2).

    ``requires_approval`` left out means: unless the risk is low. ``interactive`` tools wait for a person and never run
    beside others. ``risk_class`` overrides the class that is otherwise read from the other fields.
    """

    category: str = "custom"
    risk_level: RiskLevel = "high"
    capabilities: tuple[str, ...] = ()
    requires_approval: bool | None = None
    risk_class: RiskClass | None = None
    interactive: bool = False

    def __post_init__(self) -> None:
        _check_choice("risk_level", self.risk_level)
        if self.requires_approval is None:
            msgspec.structs.force_setattr(self, "requires_approval", self.risk_level != "low")

    @classmethod
    def of(cls, value: ToolMetadata | Mapping[str, Any] | None) -> ToolMetadata:
        """Metadata from an object or a mapping in snake_case or camelCase. Raises :class:`UsageError`."""
        if isinstance(value, ToolMetadata):
            return value
        if not isinstance(value, Mapping | None):
            raise UsageError(f"The metadata of a tool is a ToolMetadata or a dictionary of its fields, not {value!r}.")
        fields: dict[str, Any] = {}
        for key, item in (value or {}).items():
            if key not in _FIELDS:
                raise UsageError(f"Tool metadata has no field {key!r}. Known fields: {', '.join(_FIELDS)}.")
            fields[_FIELDS[key]] = item
        for name in _CHOICES.keys() & fields.keys():
            _check_choice(name, fields[name])
        try:
            return msgspec.convert(fields, cls, strict=True)
        except msgspec.ValidationError as error:
            raise UsageError(f"The tool metadata cannot be used: {error}.") from None


def _check_choice(name: str, value: object) -> None:
    """Raise :class:`UsageError` that lists the choices unless ``value`` is one. ``None`` leaves a risk class open."""
    choices = _CHOICES[name]
    if value not in choices and not (name == "risk_class" and value is None):
        listed = ", ".join(f"'{choice}'" for choice in choices[:-1])
        raise UsageError(f"The {name} of a tool must be {listed} or '{choices[-1]}', not {value!r}.")


class ToolSpec(msgspec.Struct, kw_only=True):
    """One registered tool. ``schema`` is the function schema that the model sees."""

    name: str
    func: Callable[..., Any]
    schema: JsonSchema
    metadata: ToolMetadata
    source: str = "internal"
    passing: Passing = Passing.ARGS
    enabled: bool = True
    _validator: Validator | None = None
    _compiled: bool = False

    @property
    def concurrent(self) -> bool:
        """Whether calls may run beside others: low risk, no approval, nobody waits for a person."""
        meta = self.metadata
        return meta.risk_level == "low" and not meta.requires_approval and not meta.interactive

    def parse(self, arguments: str | Mapping[str, Any] | None) -> dict[str, Any]:
        """The arguments as the tool gets them. Raises :class:`ToolArgumentError`.

        The permission engine should be shown these, so that it judges what will really happen.
        """
        parameters = parameters_of(self.schema)
        if isinstance(arguments, Mapping):
            given: Mapping[str, Any] = arguments
        else:
            given = parse_json_object(arguments or "", parameters)
        if not self._compiled:
            self._validator = compile_validator(parameters, self.name)
            self._compiled = True
        return check_arguments(given, parameters, self._validator)


class ToolRegistry:
    """The tools of a session by name (Manual §7.2).

    Registering a name again replaces the tool. The order of first registration is the order in which the model sees
    them.
    """

    def __init__(self) -> None:
        self._tools: dict[str, ToolSpec] = {}
        self._schemas: list[JsonSchema] | None = None
        self._on_close: list[Callable[[], object]] = []

    def register(
        self,
        func: Callable[..., Any],
        metadata: ToolMetadata | Mapping[str, Any] | None = None,
        schema: JsonSchema | None = None,
        source: str = "internal",
    ) -> ToolSpec:
        """Add ``func(args, ctx)`` or ``func(args)``, plain or coroutine function, and return its :class:`ToolSpec`.

        The name comes from ``schema``; without one from the function, with no arguments described: production tools
        give a schema, or use :meth:`tool`. ``source`` is for display. Raises :class:`UsageError` for a name that
        models do not accept or metadata that cannot be used.
        """
        meta = ToolMetadata.of(metadata)
        if schema is None:
            schema = function_schema(getattr(func, "__name__", type(func).__name__), inspect.getdoc(func) or "")
        elif "function" not in schema:
            schema = {"type": "function", "function": schema}
        name = schema["function"].get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} cannot be a tool's name: use up to 64 letters, digits, '_' and '-'.")
        return self._add(ToolSpec(name=name, func=func, schema=schema, metadata=meta, source=source))

    def _add(self, spec: ToolSpec) -> ToolSpec:
        spec.passing = passing_of(spec.func)
        self._tools[spec.name] = spec
        self._schemas = None
        return spec

    @overload
    def tool(self, metadata: F, /) -> F: ...

    @overload
    def tool(
        self,
        metadata: ToolMetadata | Mapping[str, Any] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        source: str = "internal",
        **fields: Any,
    ) -> Callable[[F], F]: ...

    def tool(
        self,
        metadata: Any = None,
        *,
        name: str | None = None,
        description: str | None = None,
        source: str = "internal",
        **fields: Any,
    ) -> Any:
        """A decorator that registers an ordinary function with a schema from its type hints and docstring.

        The arguments arrive by name and already converted (enums, dataclasses …); a parameter called ``ctx`` gets the
        :class:`ToolContext` and is not shown to the model. Metadata may also be given as keywords:
        ``@registry.tool(category="data", risk_level="low")``. Without parentheses, ``@registry.tool``, every call of
        the tool is asked for. Raises :class:`UsageError` for metadata that cannot be used.
        """
        if callable(metadata):
            return self.tool(None, name=name, description=description, source=source, **fields)(metadata)

        def decorate(func: F) -> F:
            derived = derive_tool(func, name=name, description=description)
            self.register(derived.call, metadata if metadata is not None else fields, derived.schema, source)
            return func

        return decorate

    def remove(self, name: str) -> bool:
        """Take a tool away; whether there was one."""
        self._schemas = None
        return self._tools.pop(name, None) is not None

    def disable(self, name: str) -> bool:
        """Hide a tool from the model; whether there is one of this name."""
        return self._switch(name, False)

    def enable(self, name: str) -> bool:
        """Show a tool to the model again; whether there is one of this name."""
        return self._switch(name, True)

    def _switch(self, name: str, enabled: bool) -> bool:
        spec = self._tools.get(name)
        if spec is None:
            return False
        spec.enabled = enabled
        self._schemas = None
        return True

    def get(self, name: str) -> ToolSpec | None:
        """The tool called ``name``, disabled or not."""
        return self._tools.get(name)

    def names(self) -> list[str]:
        """The names of the tools that the model sees."""
        return [spec.name for spec in self._tools.values() if spec.enabled]

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __len__(self) -> int:
        return len(self._tools)

    def schemas(self) -> Sequence[JsonSchema]:
        """The function schemas of the enabled tools; the same list object until a tool changes."""
        if self._schemas is None:
            self._schemas = [spec.schema for spec in self._tools.values() if spec.enabled]
        return self._schemas

    async def call(self, name: str, arguments: str | Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        """Run a tool and return what the model is to read; only cancellation is raised (Manual §7.2).

        Arguments that do not fit, and whatever the tool raises, become ``{"error": …, "error_type": …}``.
        """
        spec = self._tools.get(name)
        if spec is None or not spec.enabled:
            return error_output(self._no_such_tool(name, spec), "UnknownToolError")
        try:
            args = spec.parse(arguments)
        except ToolArgumentError as error:
            return output_of_exception(error)
        run = bind(spec.func, spec.passing, args, ctx)
        if is_coroutine_function(spec.func):
            return await self._call_async(run, name, ctx)
        outcome = await run_in_thread(_finish, run, name, ctx)
        if outcome.error is not None:
            return _failed(outcome.error)
        result = outcome.value()
        if isinstance(result, ToolOutput):
            return result
        return await self._call_async(lambda: result, name, ctx)

    async def _call_async(self, run: Callable[[], Any], name: str, ctx: ToolContext) -> ToolOutput:
        try:
            value = await run()
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            return _failed(error)
        outcome = await run_in_thread(_finish, lambda: value, name, ctx)
        if outcome.error is not None:
            return _failed(outcome.error)
        finished = outcome.value()
        return finished if isinstance(finished, ToolOutput) else as_output(repr(finished))

    def on_close(self, callback: Callable[[], object]) -> None:
        """Have ``callback`` called by :meth:`close`, for tools that leave something running between calls."""
        self._on_close.append(callback)

    def close(self) -> None:
        """End what the tools left running, such as background commands; each may take a second.

        The tools stay, and what they start afterwards is ended by closing again. What a callback raises is logged.
        """
        for callback in self._on_close:
            try:
                callback()
            except Exception:
                # The others have something to end as well.
                logger.exception("a tool could not end what it left running")

    def _no_such_tool(self, name: str, spec: ToolSpec | None) -> str:
        if spec is not None:
            return f"The tool {name} is switched off. Use another one: {', '.join(self.names())}."
        close = difflib.get_close_matches(name, self.names(), n=1, cutoff=0.6)
        hint = f" Did you mean {close[0]}?" if close else ""
        return f"There is no tool called {name}.{hint} The tools are: {', '.join(self.names()) or 'none'}."


def _finish(run: Callable[[], Any], name: str, ctx: ToolContext) -> ToolOutput | Any:
    """Run the tool, encode its value and apply the budget; an awaitable is handed back to the loop."""
    value = run()
    if inspect.isawaitable(value):
        return value
    output = masked(as_output(value))
    output.text = budget.within_budget(output.text, ctx, name)
    return output


def _failed(error: BaseException) -> ToolOutput:
    """The error as output. Cancellation is no error of the tool and goes on."""
    if isinstance(error, asyncio.CancelledError):
        raise error
    return masked(output_of_exception(error))
