"""A cell that stands in for ``%%agent``: it serves the main thread while another thread calls the kernel's tools."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.kernel import Kernel, Reply, Run

SETUP = r"""
import asyncio, json, threading
from zq_notebook.cancel import CancelToken
from zq_notebook.notebook.kernel_tools import register_kernel_tools
from zq_notebook.notebook.main_thread import MainThread
from zq_notebook.toolio import ToolContext
from zq_notebook.tools.registry import ToolRegistry

class _Harness:
    def __init__(self):
        self.main, self.registry = MainThread(), ToolRegistry()
        register_kernel_tools(self.registry, get_ipython(), self.main)
        self.presses = 0
        self.token = CancelToken()
        self.ticks = 0

    async def calls(self, calls):
        outputs = []
        for name, arguments in calls:
            outputs.append(await self.registry.call(name, arguments, ToolContext(cancel=self.token)))
        return outputs

    def tick(self):
        self.ticks += 1

    def pressed(self):
        self.presses += 1
        self.token.set()

    async def play(self, work, tick=0.1):
        import concurrent.futures, contextvars
        future = concurrent.futures.Future()
        def engine():
            try:
                future.set_result(asyncio.run(work))
            except BaseException as error:
                future.set_exception(error)
        thread = threading.Thread(target=contextvars.copy_context().run, args=(engine,))
        thread.start()
        finished = await self.main.serve(future, tick=tick, on_tick=self.tick, on_interrupt=self.pressed)
        if not finished:
            return finished
        thread.join()
        return future.result()

    async def tools(self, calls):
        outputs = await self.play(self.calls(calls))
        shown = [] if outputs is False else [
            {"text": o.text, "ok": o.ok, "error_type": o.error_type, "summary": o.summary,
             "images": [len(i.data) for i in o.images], "display": dict(o.display or {})} for o in outputs]
        print("@@" + json.dumps({"outputs": shown, "presses": self.presses}) + "@@")

zq_harness = _Harness()
"""


def _cell(calls: list[tuple[str, dict[str, Any]]]) -> str:
    return f"await zq_harness.tools({calls!r})"


def start_code(kernel: Kernel, code: str, **arguments: Any) -> Run:
    """Begin a cell in which the agent runs ``code``."""
    return kernel.start(_cell([("run_code", {"code": code, **arguments})]))


def outputs_of(reply: Reply) -> tuple[list[dict[str, Any]], int]:
    """What the tools returned, and how often ■ was noticed; taken out of the cell's stdout."""
    before, found, rest = reply.stdout.partition("@@")
    assert found, f"{reply.error}\n{reply.stderr}\n{reply.stdout}"
    packed, _, after = rest.partition("@@")
    reply.stdout = before + after.lstrip("\n")
    told = json.loads(packed)
    return told["outputs"], told["presses"]


def call(kernel: Kernel, name: str, **arguments: Any) -> tuple[dict[str, Any], Reply]:
    """One tool call in a cell of its own: the tool's output, and what the cell showed beside it."""
    reply = kernel.start(_cell([(name, arguments)])).finish()
    outputs, _ = outputs_of(reply)
    return outputs[0], reply


def run_code(kernel: Kernel, code: str, **arguments: Any) -> tuple[dict[str, Any], Reply]:
    """:func:`call` for ``run_code``."""
    return call(kernel, "run_code", code=code, **arguments)
