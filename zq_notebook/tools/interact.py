"""Tools that talk to the person: a question, a plan, a directory (Manual §7.1).

Each asks through a handler: the engine's own (``ctx.handlers``), else the process-wide one set here. They are called
with positional arguments and may be plain or coroutine functions. Without one the model is told that nobody can answer;
nothing ever waits for someone who is not there.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from zq_notebook.toolio import ToolContext, ToolOutput
from zq_notebook.tools.calling import is_coroutine_function
from zq_notebook.tools.encode import as_text, error_output
from zq_notebook.tools.registry import ToolMetadata, ToolRegistry
from zq_notebook.tools.schema import function_schema
from zq_notebook.tools.workers import run_in_thread

Handler = Callable[..., Any]
_METADATA = ToolMetadata(category="interact", risk_level="low", capabilities=("ask",), interactive=True)
_handlers: dict[str, Handler] = {}

_ASK = function_schema(
    "ask_user",
    "Ask the user one question and wait for the answer. Use it when a decision is theirs and the workspace or the "
    "variables cannot answer it.",
    {
        "type": "object",
        "properties": {
            "question": {"type": "string", "description": "The question, complete in itself"},
            "options": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Answers to choose from, if there are a few likely ones",
            },
            "allow_text": {
                "type": "boolean",
                "description": "Whether the user may also type an answer of their own (default true)",
            },
            "multi": {"type": "boolean", "description": "Whether several options may be chosen (default false)"},
        },
        "required": ["question"],
        "additionalProperties": False,
    },
)
_PLAN = function_schema(
    "propose_plan",
    "Show the user a plan before carrying it out, and wait for their decision.",
    {
        "type": "object",
        "properties": {"plan": {"type": "string", "description": "The plan in Markdown: what will be done, in order"}},
        "required": ["plan"],
        "additionalProperties": False,
    },
)
_DIRECTORY = function_schema(
    "request_directory",
    "Ask the user for access to a directory outside the workspace.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The directory"},
            "reason": {"type": "string", "description": "Why it is needed"},
            "writable": {"type": "boolean", "description": "Whether files in it will be changed (default false)"},
        },
        "required": ["path", "reason"],
        "additionalProperties": False,
    },
)


def _set_handler(kind: str, handler: Handler | None) -> None:
    if handler is None:
        _handlers.pop(kind, None)
    else:
        _handlers[kind] = handler


def set_question_handler(handler: Handler | None) -> None:
    """Set the process-wide ``handler(question, options, allow_text, multi)``; ``None`` takes it away.

    It returns the answer: a string, or a list of the chosen options. An engine's own handler wins.
    """
    _set_handler("question", handler)


def set_plan_handler(handler: Handler | None) -> None:
    """Set the process-wide ``handler(plan)``; ``None`` takes it away.

    It returns ``True`` (go ahead), ``False``, or text that the model is to read.
    """
    _set_handler("plan", handler)


def set_directory_handler(handler: Handler | None) -> None:
    """Set the process-wide ``handler(reason, path, writable)``; ``None`` takes it away.

    It returns whether access is given, or text that the model is to read.
    """
    _set_handler("directory", handler)


async def _ask(kind: str, ctx: ToolContext, *arguments: object) -> Any:
    """The handler's answer. A plain function runs on a thread; one that is asked is left alone once the turn stops."""
    handler = ctx.handlers.get(kind) or _handlers[kind]
    if not is_coroutine_function(handler):
        answer = await _until_stopped(run_in_thread(handler, *arguments), ctx)
        value = answer.value()
        return await _until_stopped(value, ctx) if inspect.isawaitable(value) else value
    return await _until_stopped(handler(*arguments), ctx)


async def _until_stopped(waiting: Any, ctx: ToolContext) -> Any:
    """Await ``waiting``, but no longer than until the user stops the turn."""
    asked = asyncio.ensure_future(waiting)
    stopped = asyncio.ensure_future(ctx.cancel.wait_async())
    try:
        await asyncio.wait({asked, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            raise InterruptedError("The turn was stopped before there was an answer.")
        return asked.result()
    finally:
        stopped.cancel()
        asked.cancel()


def _nobody(kind: str, ctx: ToolContext, advice: str) -> ToolOutput | None:
    if kind in ctx.handlers or kind in _handlers:
        return None
    return error_output(f"Nobody can answer: this session has no one to ask. {advice}", "NobodyToAskError")


async def ask_user(args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
    """Ask a question and return the answer (Manual §7.1)."""
    options = [str(option) for option in args.get("options") or ()]
    allow_text = bool(args.get("allow_text", True)) or not options
    multi = bool(args.get("multi", False))
    ctx.emit("ask_user_question", question=args["question"], options=options, allow_text=allow_text, multi=multi)
    missing = _nobody("question", ctx, "Decide yourself, choose what is easiest to undo, and say what you assumed.")
    if missing is not None:
        return missing
    answer = await _ask("question", ctx, args["question"], options, allow_text, multi)
    if answer is None or answer in ("", []):
        return ToolOutput(text="The user gave no answer.", summary="no answer")
    text = as_text(list(answer) if isinstance(answer, (tuple, set)) else answer)
    return ToolOutput(text=text, summary=text[:60])


def _decision(answer: object, yes: str, no: str) -> ToolOutput:
    if answer is True:
        return ToolOutput(text=yes, summary="approved")
    if answer is None or answer is False:
        return ToolOutput(text=no, summary="declined")
    return ToolOutput(text=as_text(answer))


async def propose_plan(args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
    """Show a plan and return the user's decision (Manual §7.1)."""
    ctx.emit("plan_proposed", plan=args["plan"])
    missing = _nobody("plan", ctx, "Go on only with steps that change nothing, and describe the rest in your answer.")
    if missing is not None:
        return missing
    answer = await _ask("plan", ctx, args["plan"])
    return _decision(
        answer,
        "The user approved the plan. Carry it out.",
        "The user did not approve the plan. Ask what to change; do not carry it out.",
    )


async def request_directory(args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
    """Ask for access to a directory and return the user's decision (Manual §7.1)."""
    writable = bool(args.get("writable", False))
    ctx.emit("directory_requested", reason=args["reason"], path=args["path"], writable=writable)
    missing = _nobody("directory", ctx, "Stay inside the workspace.")
    if missing is not None:
        return missing
    answer = await _ask("directory", ctx, args["reason"], args["path"], writable)
    access = "reading and writing" if writable else "reading"
    return _decision(
        answer,
        f"The user gave access to {args['path']} for {access}.",
        f"The user did not give access to {args['path']}. Stay inside the workspace.",
    )


def register_ask_tool(registry: ToolRegistry) -> None:
    """Register ``ask_user``."""
    registry.register(ask_user, _METADATA, _ASK)


def register_plan_tool(registry: ToolRegistry) -> None:
    """Register ``propose_plan``."""
    registry.register(propose_plan, _METADATA, _PLAN)


def register_directory_tool(registry: ToolRegistry) -> None:
    """Register ``request_directory``."""
    registry.register(request_directory, _METADATA, _DIRECTORY)
