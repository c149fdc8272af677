"""How a tool function wants to be called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from zq_notebook.toolio import ToolContext

CONTEXT_NAMES = frozenset({"ctx", "context", "tool_context"})


class Passing(Enum):
    """Where the context goes: nowhere, second, by the keyword ``ctx``; or no arguments at all."""

    ARGS = "args"
    ARGS_AND_CONTEXT = "args, ctx"
    CONTEXT_BY_KEYWORD = "args, ctx=ctx"
    NOTHING = ""


def is_context_parameter(parameter: inspect.Parameter) -> bool:
    """Whether a parameter is meant for the :class:`ToolContext`, by its name or its annotation."""
    annotation = parameter.annotation
    named = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return parameter.name.lstrip("_") in CONTEXT_NAMES or "ToolContext" in str(named)


def passing_of(func: Callable[..., object]) -> Passing:
    """How to call ``func(args, ctx)``, ``func(args)`` or ``func()``."""
    try:
        parameters = list(inspect.signature(func).parameters.values())
    except (TypeError, ValueError):
        return Passing.ARGS
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return Passing.ARGS_AND_CONTEXT
    if len(positional) >= 2 and (
        positional[1].default is inspect.Parameter.empty or is_context_parameter(positional[1])
    ):
        return Passing.ARGS_AND_CONTEXT
    by_keyword = any(p.kind is p.KEYWORD_ONLY and is_context_parameter(p) and p.name == "ctx" for p in parameters)
    if by_keyword and positional:
        return Passing.CONTEXT_BY_KEYWORD
    return Passing.ARGS if positional else Passing.NOTHING


def bind(func: Callable[..., Any], passing: Passing, args: Mapping[str, Any], ctx: ToolContext) -> Callable[[], Any]:
    """The call, ready to be made."""
    match passing:
        case Passing.ARGS_AND_CONTEXT:
            return functools.partial(func, args, ctx)
        case Passing.CONTEXT_BY_KEYWORD:
            return functools.partial(func, args, ctx=ctx)
        case Passing.NOTHING:
            return func
    return functools.partial(func, args)


def is_coroutine_function(func: Callable[..., object]) -> bool:
    """Whether calling ``func`` gives a coroutine, also through ``partial`` and objects with an async ``__call__``."""
    while isinstance(func, functools.partial):
        func = func.func
    return inspect.iscoroutinefunction(func) or inspect.iscoroutinefunction(getattr(func, "__call__", None))  # noqa: B004
