"""The tools that only a live kernel has: its variables, and code run in it (Manual §7)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from zq_notebook.errors import ToolError
from zq_notebook.notebook.main_job import MainJob
from zq_notebook.notebook.main_thread import MainThread
from zq_notebook.permissions.risk import RiskClass
from zq_notebook.toolio import ToolContext, ToolOutput
from zq_notebook.tools.registry import ToolMetadata, ToolRegistry

if TYPE_CHECKING:
    from zq_notebook.notebook.code_run import CodeOutcome

DEFAULT_TIMEOUT = 300.0
MAX_TIMEOUT = 3_600.0

_READ = ToolMetadata(category="kernel", risk_level="low", capabilities=("read",), risk_class=RiskClass.READ)
_EXECUTE = ToolMetadata(
    category="kernel",
    risk_level="high",
    capabilities=("execute",),
    requires_approval=True,
    risk_class=RiskClass.EXECUTE,
)


def register_kernel_tools(
    registry: ToolRegistry,
    shell: Any,
    main: MainThread,
    *,
    default_timeout: float = DEFAULT_TIMEOUT,
    max_timeout: float = MAX_TIMEOUT,
) -> None:
    """Register ``list_variables``, ``inspect_variable`` and ``run_code`` for the IPython shell of this kernel.

    ``main`` must be serving while they are called. ``default_timeout`` and ``max_timeout`` are the limits of
    ``run_code`` in seconds.
    """
    tools = KernelTools(shell, main, default_timeout, max_timeout)
    registry.register(tools.list_variables, _READ, _LIST_VARIABLES)
    registry.register(tools.inspect_variable, _READ, _INSPECT_VARIABLE)
    registry.register(tools.run_code, _EXECUTE, _run_code_schema(default_timeout, max_timeout))


class KernelTools:
    """The three tools; each takes the model's arguments and the call's context."""

    def __init__(self, shell: Any, main: MainThread, default_timeout: float, max_timeout: float) -> None:
        self._shell = shell
        self._main = main
        self._default_timeout = default_timeout
        self._max_timeout = max_timeout

    async def list_variables(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        """Name, type, shape or length, size and a one-line preview of each variable."""
        from zq_notebook.notebook.variable_list import list_variables

        return await self._main.run(
            lambda: list_variables(self._shell, str(args.get("filter") or ""), int(args.get("limit") or 100)),
            name="list_variables",
        )

    async def inspect_variable(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        """One object in detail, without running any code of its class."""
        from zq_notebook.notebook.inspect_value import inspect_path

        return await self._main.run(lambda: inspect_path(self._shell, str(args["name"])), name="inspect_variable")

    async def run_code(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        """Run code as a cell, at most ``timeout`` seconds."""
        from zq_notebook.notebook.code_report import report

        asked = float(args.get("timeout") or self._default_timeout)
        timeout = min(max(asked, 1.0), self._max_timeout)
        outcome = await self._execute(str(args["code"]), timeout, ctx)
        output = await asyncio.to_thread(report, outcome, timeout)
        if asked > timeout:
            output.text += f"\n[the time limit was {timeout:g} s, the most that is allowed here]"
        return output

    async def _execute(self, code: str, timeout: float, ctx: ToolContext) -> CodeOutcome:
        from zq_notebook.notebook.code_run import CodeRun

        run = CodeRun(self._shell, code)
        job: MainJob[None] = self._main.submit(run.execute, name="run_code")
        try:
            await self._supervise(job, timeout, ctx)
        except asyncio.CancelledError:
            if not await job.stop("cancelled"):
                run.give_up()
            raise
        if not job.done():
            run.give_up()
            return await asyncio.to_thread(run.outcome, job.stop_reason, still_running=True)
        try:
            await job.result()
        except ToolError:
            # Interrupted outside the code itself: what was collected until then is the answer.
            job.stop_reason = job.stop_reason or "cancelled"
        return await asyncio.to_thread(run.outcome, job.stop_reason)

    @staticmethod
    async def _supervise(job: MainJob[None], timeout: float, ctx: ToolContext) -> None:
        """Wait for the job; stop it at the time limit, or when the user stops the turn."""
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        remove = ctx.cancel.on_cancel(lambda: loop.call_soon_threadsafe(stopped.set))
        waits: list[asyncio.Task[bool]] = [asyncio.create_task(job.wait(timeout)), asyncio.create_task(stopped.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not job.done():
                await job.stop("cancelled" if stopped.is_set() else "timeout")
        finally:
            remove()
            for wait in waits:
                wait.cancel()


_LIST_VARIABLES: dict[str, Any] = {
    "name": "list_variables",
    "description": (
        "List the variables of the notebook's kernel: name, type, shape or length, size in memory and a one-line "
        "preview. Nothing is computed and nothing changes. Look here before assuming what the data is called."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "filter": {
                "type": "string",
                "description": "Only names or types that contain this text, or match it when it has * or ? "
                "(for example 'df*' or 'DataFrame').",
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "At most so many; default 100."},
        },
        "additionalProperties": False,
    },
}

_INSPECT_VARIABLE: dict[str, Any] = {
    "name": "inspect_variable",
    "description": (
        "Look closely at one object in the notebook's kernel without running code: columns, types, nulls, figures and "
        "first rows of a table; shape, type and range of an array; items of a container; signature of a function; "
        "attributes of an object. Figures of very large data come from a sample and say so."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "description": "A variable, or a path from one: df, df['price'], config[\"paths\"][0], model.params.",
            },
        },
        "required": ["name"],
        "additionalProperties": False,
    },
}


def _run_code_schema(default_timeout: float, max_timeout: float) -> dict[str, Any]:
    return {
        "name": "run_code",
        "description": (
            "Run Python code in the notebook's kernel, as a cell: the user's variables are there and what you define "
            "stays, top-level await, magics and !commands work, the last expression is shown. You get stdout, stderr, "
            "the result, errors and plots (as images); the user sees them too. The code cannot ask for input."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "The code of the cell."},
                "timeout": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "description": f"Seconds after which it is interrupted; default {default_timeout:g}, "
                    f"at most {max_timeout:g}.",
                },
            },
            "required": ["code"],
            "additionalProperties": False,
        },
    }
