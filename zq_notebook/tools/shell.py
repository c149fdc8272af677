"""Running commands (Manual §7.1): in the foreground with a time limit, in the background with output as it comes."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zq_notebook.errors import ToolError
from zq_notebook.toolio import ToolContext, ToolOutput
from zq_notebook.tools import budget
from zq_notebook.tools.capture import Capture, readable, whole_characters
from zq_notebook.tools.place import Workspace
from zq_notebook.tools.process import ShellProcess
from zq_notebook.tools.registry import ToolMetadata, ToolRegistry
from zq_notebook.tools.schema import function_schema

DEFAULT_TIMEOUT = 120.0  # seconds
MAX_TIMEOUT = 600.0
MAX_TASKS = 32
_ENDING_CHARS = 160  # room for the line that says how a command ended
_RUN_METADATA = ToolMetadata(category="shell", risk_level="high", capabilities=("execute",), requires_approval=True)
_TASK_METADATA = ToolMetadata(category="shell", risk_level="low", capabilities=("read",), requires_approval=False)

_RUN = function_schema(
    "run_shell",
    "Run a command in the workspace with bash (sh where there is no bash) and return its output, standard error "
    "included, and exit code. There is no terminal and no standard input. What a command leaves running with '&' is "
    "ended with it: use background=true for servers and long jobs, then shell_task_output and shell_task_kill.",
    {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command line"},
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": f"Seconds until it is ended (default {DEFAULT_TIMEOUT:.0f}, at most {MAX_TIMEOUT:.0f}; "
                "none in the background)",
            },
            "background": {"type": "boolean", "description": "Return at once with a task id (default false)"},
            "cwd": {"type": "string", "description": "Directory to run in, inside the workspace (default: its root)"},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
)
_OUTPUT = function_schema(
    "shell_task_output",
    "Return what a background task has written since the last look, and whether it still runs.",
    {
        "type": "object",
        "properties": {
            "task_id": {"type": "string", "description": "The id that run_shell returned"},
            "wait": {
                "type": "number",
                "minimum": 0,
                "maximum": 60,
                "description": "Seconds to wait for new output or the end, if there is none yet (default 0)",
            },
        },
        "required": ["task_id"],
        "additionalProperties": False,
    },
)
_KILL = function_schema(
    "shell_task_kill",
    "End a background task that run_shell started, with everything it started.",
    {
        "type": "object",
        "properties": {"task_id": {"type": "string", "description": "The id that run_shell returned"}},
        "required": ["task_id"],
        "additionalProperties": False,
    },
)


class _Task:
    """A background command, and how much of its output was shown."""

    def __init__(self, task_id: str, command: str) -> None:
        self.id = task_id
        self.command = command
        self.changed = threading.Condition()
        self.process: ShellProcess
        self.log: Path
        self.shown = 0
        self.killed = False
        self.timed_out = False

    def notify(self) -> None:
        """Wake whoever waits for output."""
        with self.changed:
            self.changed.notify_all()

    def state(self) -> str:
        """What the task is doing, in a few words."""
        code = self.process.exit_code
        if code is None:
            return "running"
        if self.timed_out:
            return "ended: over its time limit"
        return "killed" if self.killed else f"ended with {_exit(code)}"


class ShellTasks:
    """The commands of one registry. Closing the registry ends its background tasks; so does the end of the process."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._tasks: dict[str, _Task] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def run_shell(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        """Run one command (Manual §7.1)."""
        command = str(args["command"])
        if not command.strip():
            raise ToolError("The command is empty.")
        cwd = self._workspace.find_inside(str(args.get("cwd") or "."))
        timeout = args.get("timeout")
        limit = None if timeout is None else min(float(timeout), MAX_TIMEOUT)
        if args.get("background"):
            return self._start(command, cwd, limit, ctx)
        return _run(command, cwd, limit or DEFAULT_TIMEOUT, ctx)

    def _start(self, command: str, cwd: Path, timeout: float | None, ctx: ToolContext) -> ToolOutput:
        with self._lock:
            running = [task for task in self._tasks.values() if task.process.exit_code is None]
            if len(running) >= MAX_TASKS:
                raise ToolError(f"{MAX_TASKS} background tasks are running. End one with shell_task_kill first.")
            task = _Task(f"task-{next(self._numbers)}", command)
            descriptor, task.log = budget.new_result_file(ctx, "run_shell", ".log")
            capture = Capture(0, lambda: (descriptor, task.log))
            try:
                task.process = ShellProcess(command, cwd, capture, task.notify)
            except ToolError:
                os.close(descriptor)
                task.log.unlink(missing_ok=True)
                raise
            self._tasks[task.id] = task
        if timeout is not None:
            timer = threading.Timer(timeout, _expire, (task,))
            timer.daemon = True
            timer.start()
        return ToolOutput(
            text=f"Started {task.id} in the background (process {task.process.pid}). Its output goes to "
            f"{self._workspace.show(task.log)}; look with shell_task_output(task_id='{task.id}'), end it with "
            "shell_task_kill.",
            summary=task.id,
            # What stays in the notebook is the same on every run.
            display={"text/plain": f"Started {task.id} in the background."},
        )

    def _task(self, args: Mapping[str, Any]) -> _Task:
        task = self._tasks.get(str(args["task_id"]))
        if task is None:
            known = ", ".join(self._tasks) or "none"
            raise ToolError(f"There is no task {args['task_id']}. Tasks of this session: {known}.")
        return task

    def shell_task_output(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        """The new output of a background task (Manual §7.1)."""
        task = self._task(args)
        _wait_for_output(task, float(args.get("wait") or 0), ctx)
        # The state first: output that comes in between then belongs to a task that still ran.
        if task.process.exit_code is not None:
            task.process.finish()
        state = task.state()
        with open(task.log, "rb") as file:
            file.seek(task.shown)
            data = file.read(max(budget.limit() - 500, 200))
            size = os.fstat(file.fileno()).st_size
        if task.shown + len(data) < size or state == "running":
            data = whole_characters(data)
        task.shown += len(data)
        text = readable(data).rstrip("\n")
        if task.process.capture.file_error:
            state += f"; output was lost: {task.process.capture.file_error}"
        more = f"; {size - task.shown:,} more bytes, look again or read {task.log}" if size > task.shown else ""
        return ToolOutput(text=f"{text or '(no new output)'}\n[{task.id} {state}{more}]", summary=state)

    def shell_task_kill(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        """End a background task (Manual §7.1)."""
        task = self._task(args)
        if task.process.exit_code is not None:
            return ToolOutput(text=f"{task.id} had already {task.state()}.")
        task.killed = True
        task.process.kill()
        task.process.finish()
        return ToolOutput(text=f"{task.id} was ended. Its output is in {task.log}.", summary="killed")

    def close(self) -> None:
        """End every background task."""
        for task in list(self._tasks.values()):
            if task.process.exit_code is None:
                task.killed = True
                task.process.kill()
            task.process.finish()


def _expire(task: _Task) -> None:
    if task.process.exit_code is None:
        task.timed_out = True
        task.process.kill()


def _wait_for_output(task: _Task, seconds: float, ctx: ToolContext) -> None:
    deadline = time.monotonic() + seconds
    remove = ctx.cancel.on_cancel(task.notify)
    try:
        with task.changed:
            while (
                not (task.process.capture.total > task.shown or task.process.ended.is_set() or ctx.cancel.is_set())
                and (left := deadline - time.monotonic()) > 0
            ):
                task.changed.wait(left)
    finally:
        remove()


def _exit(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _run(command: str, cwd: Path, timeout: float, ctx: ToolContext) -> ToolOutput:
    """The command in the foreground: until it ends, its time is over, or the user stops the turn."""
    wake = threading.Event()
    # A little less than the budget, so that output that stays in memory is never cut.
    capture = Capture(budget.limit() - _ENDING_CHARS, lambda: budget.new_result_file(ctx, "run_shell"))

    def changed() -> None:
        if process.ended.is_set():
            wake.set()

    process: ShellProcess
    started = threading.Event()

    def changed_once_started() -> None:
        started.wait()
        changed()

    process = ShellProcess(command, cwd, capture, changed_once_started)
    started.set()
    remove = ctx.cancel.on_cancel(wake.set)
    try:
        wake.wait(timeout)
        ended = process.ended.is_set()
        if not ended:
            process.kill()
        left = process.finish()
    finally:
        remove()
    if ended:
        code = process.exit_code or 0
        notes = [_exit(code)]
        if left:
            notes.append("what it left running was ended with it; use background=true to keep something running")
        return ToolOutput(text=_report(capture, notes), summary=notes[0])
    stopped = ctx.cancel.is_set()
    note = "interrupted by the user" if stopped else f"ended after {timeout:g} s, its time limit"
    return ToolOutput(
        text=_report(capture, [note]), ok=False, error_type="Interrupted" if stopped else "TimeoutError", summary=note
    )


def _report(capture: Capture, notes: list[str]) -> str:
    """The output, shortened where it is long, and how the command ended."""
    head, left_out, tail = capture.ends()
    ending = f"[{'; '.join(notes)}]"
    allowed = budget.limit() - len(ending) - 2
    text = readable(head) + (readable(tail) if left_out else "")
    if left_out == 0 and len(text) <= allowed:
        return f"{text.rstrip(chr(10)) or '(no output)'}\n{ending}"
    if capture.file_error:
        where = f"The rest is lost: it could not be saved ({capture.file_error})"
    elif capture.path is not None:
        where = f"All of it is in {capture.path}; read more with read_file(path, offset, limit) or grep"
    else:
        where = "Run it again with its output in a file to see the rest"
    note = f"\n\n[… cut: the command wrote {capture.total:,} bytes. {where}. …]\n\n"
    head_text, tail_text = budget.head_and_tail(text, max(allowed - len(note), allowed // 2))
    return f"{head_text.rstrip(chr(10))}{note}{tail_text.strip(chr(10))}\n{ending}"


def register_shell_tool(registry: ToolRegistry, workspace: str | os.PathLike[str]) -> ShellTasks:
    """Register ``run_shell``, ``shell_task_output`` and ``shell_task_kill`` (Manual §7.1).

    Returns the tasks, whose ``close()`` ends what runs in the background; ``registry.close()`` calls it.
    """
    tasks = ShellTasks(Workspace(workspace))
    registry.register(tasks.run_shell, _RUN_METADATA, _RUN)
    registry.register(tasks.shell_task_output, _TASK_METADATA, _OUTPUT)
    registry.register(tasks.shell_task_kill, _TASK_METADATA, _KILL)
    registry.on_close(tasks.close)
    return tasks
