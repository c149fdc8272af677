"""run_shell with real processes: what comes out, what ends, what is left (Manual §7.1)."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from zq_notebook.text.redact import shared
from zq_notebook.toolio import ToolContext, ToolOutput
from zq_notebook.tools.process import ShellProcess
from zq_notebook.tools.registry import ToolRegistry
from zq_notebook.tools.shell import ShellTasks, register_shell_tool
from zq_notebook.tools.shell_env import scrubbed_environment, shell_command

Call = Callable[..., Awaitable[ToolOutput]]


class Shell:
    """The shell tools of one workspace."""

    def __init__(self, root: Path) -> None:
        self.workspace = root / "ws"
        self.workspace.mkdir()
        self.results = root / "results"
        self.registry = ToolRegistry()
        self.tasks: ShellTasks = register_shell_tool(self.registry, self.workspace)

    def context(self) -> ToolContext:
        return ToolContext(result_dir=self.results)

    async def run(self, command: str, ctx: ToolContext | None = None, /, **args: object) -> ToolOutput:
        return await self.registry.call("run_shell", {"command": command, **args}, ctx or self.context())

    async def call(self, name: str, **args: object) -> ToolOutput:
        return await self.registry.call(name, args, self.context())


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.tasks.close()


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def wait_until_gone(pids: list[int], seconds: float = 3.0) -> None:
    """Wait until none of the processes runs any more."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline, f"still there: {[pid for pid in pids if alive(pid)]}"
        pause.wait(0.01)


def test_metadata_says_which_of_the_three_must_be_asked_about(tmp_path: Path) -> None:
    registry = ToolRegistry()
    register_shell_tool(registry, tmp_path)
    facts = {
        name: (spec.metadata.category, spec.metadata.risk_level, spec.metadata.requires_approval, spec.concurrent)
        for name in registry.names()
        if (spec := registry.get(name)) is not None
    }
    assert facts == {
        "run_shell": ("shell", "high", True, False),
        "shell_task_output": ("shell", "low", False, True),
        "shell_task_kill": ("shell", "low", False, True),
    }


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("echo out; echo err >&2", "out\nerr\n[exit code 0]"),
        ("exit 3", "(no output)\n[exit code 3]"),
        ("nonexistent-program", "nonexistent-program"),
        ("kill -9 $$", "(no output)\n[signal 9]"),
        ("printf 'no newline'", "no newline\n[exit code 0]"),
        ("printf 'a\\xffb'", "a\ufffdb\n[exit code 0]"),
        ("printf 'ü🎉'", "ü🎉\n[exit code 0]"),
        ("printf '10%%\\r50%%\\r100%%\\n'", "100%\n[exit code 0]"),
        ("printf '\\033[31mred\\033[0m\\033]0;title\\007'", "red\n[exit code 0]"),
        ("printf 'a\\0b'", "a\ufffdb\n[exit code 0]"),
        ("cat; echo done", "done\n[exit code 0]"),
        ("read x || echo none", "none\n[exit code 0]"),
        ("[[ x == x ]] && echo bash", "bash\n[exit code 0]"),
        ("tty || true", "not a tty\n[exit code 0]"),
        ("pwd -P | sed 's|.*/||'", "ws\n[exit code 0]"),
    ],
)
async def test_output_and_exit_code(shell: Shell, command: str, text: str) -> None:
    output = await shell.run(command)
    assert output.ok
    assert text in output.text


async def test_directory_is_inside_the_workspace(shell: Shell, tmp_path: Path) -> None:
    (shell.workspace / "sub").mkdir()
    (shell.workspace / "out").symlink_to(tmp_path)
    assert (await shell.run("pwd", cwd="sub")).text.startswith(f"{shell.workspace}/sub\n")
    for cwd in ("..", "/", "out", "sub/../.."):
        output = await shell.run("touch F", cwd=cwd)
        assert not output.ok
        assert "outside the workspace" in output.text
    assert "does not exist" in (await shell.run("pwd", cwd="missing")).text


@pytest.mark.parametrize(
    ("command", "says"),
    [("", "empty"), ("  ", "empty"), ("a\0b", "null byte"), ("echo " + "x" * 300_000, "script file")],
)
async def test_command_that_cannot_be_started_is_explained(shell: Shell, command: str, says: str) -> None:
    output = await shell.run(command)
    assert not output.ok
    assert says in json.loads(output.text)["error"]


async def test_ampersand_does_not_hang_and_leaves_nothing_behind(shell: Shell) -> None:
    started = time.perf_counter()
    output = await shell.run("sleep 60 & echo $!")
    assert time.perf_counter() - started < 2
    pid = int(output.text.split()[0])
    assert "background=true" in output.text
    await asyncio.to_thread(wait_until_gone, [pid])


async def test_a_job_that_already_ended_is_not_reported_as_left_running(shell: Shell) -> None:
    output = await shell.run("true & true & wait; echo x")
    assert output.text == "x\n[exit code 0]"


async def test_daemon_that_keeps_the_output_open_does_not_hang(shell: Shell) -> None:
    started = time.perf_counter()
    output = await shell.run("setsid sleep 60 & sleep 0.2; echo $!")
    assert time.perf_counter() - started < 2
    os.kill(int(output.text.split()[0]), signal.SIGKILL)


STUBBORN = """
trap '' TERM INT
echo $$ >> pids
sleep 60 & echo $! >> pids
(trap '' TERM; sleep 60) & echo $! >> pids
setsid bash -c 'echo $$ >> pids; trap "" TERM; sleep 60; sleep 60' &
echo started
while :; do sleep 1; done
"""


def pids_of(shell: Shell) -> list[int]:
    return [int(pid) for pid in (shell.workspace / "pids").read_text().split()]


async def test_time_limit_ends_children_and_grandchildren(shell: Shell) -> None:
    output = await shell.run(STUBBORN, timeout=0.5)
    assert (output.ok, output.error_type) == (False, "TimeoutError")
    assert output.text == "started\n[ended after 0.5 s, its time limit]"
    pids = pids_of(shell)
    assert len(pids) == 4
    await asyncio.to_thread(wait_until_gone, pids)


async def test_interrupt_ends_a_command_within_300_ms_and_keeps_its_output(shell: Shell) -> None:
    ctx = shell.context()
    running = asyncio.create_task(shell.run("echo before; sleep 60; echo after", ctx))
    await asyncio.to_thread(wait_for_child, "sleep 60")
    started = time.perf_counter()
    ctx.cancel.set()
    output = await running
    assert time.perf_counter() - started < 0.3
    assert (output.ok, output.error_type) == (False, "Interrupted")
    assert output.text == "before\n[interrupted by the user]"


def wait_for_child(command: str) -> None:
    """Wait until this process has a descendant with such a command line."""
    pause = threading.Event()
    for _ in range(500):
        listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        if command in listing.splitlines():
            return
        pause.wait(0.01)
    raise AssertionError(f"{command} did not start")


async def test_command_that_was_cancelled_before_it_began_ends_at_once(shell: Shell) -> None:
    ctx = shell.context()
    ctx.cancel.set()
    started = time.perf_counter()
    assert "interrupted" in (await shell.run("sleep 60", ctx)).text
    assert time.perf_counter() - started < 1


async def test_long_output_is_saved_and_its_ends_are_shown(shell: Shell) -> None:
    output = await shell.run("seq 1 200000")
    (saved,) = shell.results.iterdir()
    assert saved.read_text() == "".join(f"{i}\n" for i in range(1, 200_001))
    assert saved.stat().st_mode & 0o777 == 0o600
    assert output.text.startswith("1\n2\n3\n")
    assert output.text.endswith("199999\n200000\n[exit code 0]")
    assert str(saved) in output.text
    assert len(output.text) <= 30_000


@pytest.mark.parametrize("size", [29_700, 29_839, 29_840, 29_841, 30_000, 30_001, 60_000])
async def test_output_about_as_long_as_the_budget_is_whole_or_saved(shell: Shell, size: int) -> None:
    output = await shell.run(f"head -c {size} /dev/zero | tr '\\0' x")
    whole = output.text == "x" * size + "\n[exit code 0]"
    saved = list(shell.results.iterdir()) if shell.results.exists() else []
    assert whole or [file.stat().st_size for file in saved] == [size]
    assert len(output.text) <= 30_000


async def test_much_output_costs_little_memory(shell: Shell) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await shell.run("head -c 200000000 /dev/zero | tr '\\0' x")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


async def test_endless_output_is_ended_by_the_time_limit(shell: Shell) -> None:
    output = await shell.run("yes", timeout=0.3)
    assert output.text.startswith("y\ny\n")
    assert "its time limit" in output.text


async def test_output_that_cannot_be_saved_is_said_to_be_lost(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    output = await shell.run("seq 1 100000")
    assert "The rest is lost" in output.text
    assert output.text.endswith("100000\n[exit code 0]")


# the environment


async def test_secrets_are_not_in_the_environment(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = {
        "OPENAI_API_KEY": "value-one",
        "OPENAI_BASE_URL": "http://x",
        "MY_KEY": "value-two",
        "GITHUB_TOKEN": "value-three",
        "CLIENT_SECRET_ID": "value-four",
        "DB_PASSWORD": "value-five",
        "aws_secret_access_key": "value-six",
        "INNOCENT": "contains registered-secret-value inside",
        "URL": "https://user:hunter2hunter2@host/",
    }
    for name, value in hidden.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PLAIN", "stays")
    assert shared().add("registered-secret-value")
    text = (await shell.run("env")).text
    assert "PLAIN=stays" in text
    for name, value in hidden.items():
        assert f"{name}=" not in text
        assert value not in text


async def test_nothing_asks_or_pages_or_sources(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    rc = shell.workspace / "rc"
    rc.write_text("touch F; ls() { touch F; }\n")
    for name in ("BASH_ENV", "ENV", "PROMPT_COMMAND"):
        monkeypatch.setenv(name, str(rc))
    monkeypatch.setenv("BASH_FUNC_ls%%", "() {  touch F\n}")
    monkeypatch.setenv("HOME", str(shell.workspace))
    (shell.workspace / ".bashrc").write_text("touch F\n")
    (shell.workspace / ".bash_profile").write_text("touch F\n")
    monkeypatch.setenv("PATH", f".:{shell.workspace.name}::{os.environ['PATH']}")
    (shell.workspace / "cat").write_text("#!/bin/sh\ntouch F\n")
    (shell.workspace / "cat").chmod(0o755)
    output = await shell.run('ls; cat rc; echo "$GIT_TERMINAL_PROMPT $PAGER $GIT_PAGER $TERM"')
    assert "0 cat cat dumb" in output.text
    assert not (shell.workspace / "F").exists()


def test_notebook_backend_of_matplotlib_is_not_handed_on() -> None:
    assert "MPLBACKEND" not in scrubbed_environment({"MPLBACKEND": "module://matplotlib_inline.backend_inline"})
    assert scrubbed_environment({"MPLBACKEND": "agg"})["MPLBACKEND"] == "agg"


def test_command_line_for_windows_uses_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert list(shell_command("dir", "win32"))[1:] == ["/d", "/s", "/c", "dir"]


# background tasks


async def test_background_output_comes_piece_by_piece(shell: Shell) -> None:
    os.mkfifo(shell.workspace / "go")
    output = await shell.run("echo one; read x < go; echo two; exit 4", background=True)
    assert output.text.startswith("Started task-1 in the background")
    assert (await shell.call("shell_task_output", task_id="task-1", wait=5)).text == "one\n[task-1 running]"
    assert (await shell.call("shell_task_output", task_id="task-1")).text == "(no new output)\n[task-1 running]"
    await asyncio.to_thread((shell.workspace / "go").write_text, "x\n")
    texts = []
    while not texts or "running" in texts[-1]:
        texts.append((await shell.call("shell_task_output", task_id="task-1", wait=5)).text)
    joined = "\n".join(texts)
    assert "two" in joined
    assert "one" not in joined
    assert "[task-1 ended with exit code 4]" in joined


async def test_background_task_is_killed_with_its_children(shell: Shell) -> None:
    await shell.run(STUBBORN, background=True)
    while "started" not in (await shell.call("shell_task_output", task_id="task-1", wait=5)).text:
        pass
    await asyncio.to_thread(wait_for_lines, shell.workspace / "pids", 4)
    pids = pids_of(shell)
    assert "was ended" in (await shell.call("shell_task_kill", task_id="task-1")).text
    await asyncio.to_thread(wait_until_gone, pids)
    assert "killed" in (await shell.call("shell_task_output", task_id="task-1")).text
    assert "already" in (await shell.call("shell_task_kill", task_id="task-1")).text


def wait_for_lines(path: Path, count: int) -> None:
    pause = threading.Event()
    for _ in range(500):
        if path.exists() and len(path.read_text().splitlines()) >= count:
            return
        pause.wait(0.01)
    raise AssertionError(f"{path} has fewer than {count} lines")


async def test_time_limit_holds_in_the_background_too(shell: Shell) -> None:
    await shell.run("echo x; sleep 60", background=True, timeout=0.2)
    texts = ""
    while "running" in (text := (await shell.call("shell_task_output", task_id="task-1", wait=5)).text):
        texts += text
    assert "over its time limit" in text


async def test_waiting_for_output_ends_when_the_turn_is_stopped(shell: Shell) -> None:
    await shell.run("sleep 60", background=True)
    ctx = shell.context()
    waiting = asyncio.create_task(shell.registry.call("shell_task_output", {"task_id": "task-1", "wait": 60}, ctx))
    await asyncio.sleep(0)
    started = time.perf_counter()
    ctx.cancel.set()
    assert "running" in (await waiting).text
    assert time.perf_counter() - started < 1


async def test_large_background_output_comes_in_pages_without_loss(shell: Shell) -> None:
    await shell.run("seq 1 30000; echo äöü", background=True)
    text = ""
    for _ in range(100):
        page = (await shell.call("shell_task_output", task_id="task-1", wait=5)).text
        body, _, state = page.rpartition("\n[task-1 ")
        text += "" if body == "(no new output)" else body + "\n"
        if "ended" in state and "more bytes" not in state:
            break
    assert "".join(text.split()) == "".join(map(str, range(1, 30001))) + "äöü"


async def test_unknown_task_is_explained(shell: Shell) -> None:
    output = await shell.call("shell_task_output", task_id="task-7")
    assert not output.ok
    assert "Tasks of this session: none" in output.text


async def test_closing_ends_background_tasks(shell: Shell) -> None:
    output = await shell.run("sleep 60 & echo $! > child; wait", background=True)
    await asyncio.to_thread(wait_for_lines, shell.workspace / "child", 1)
    pid = int(output.text.split("process ")[1].split(")")[0])
    shell.tasks.close()
    await asyncio.to_thread(wait_until_gone, [pid, int((shell.workspace / "child").read_text())])


async def test_closing_the_registry_ends_background_tasks(shell: Shell) -> None:
    output = await shell.run("sleep 60", background=True)
    await asyncio.to_thread(shell.registry.close)
    await asyncio.to_thread(wait_until_gone, [int(output.text.split("process ")[1].split(")")[0])])


def run_and_exit(workspace: Path, command: str, then: str = "") -> list[int]:
    """A process of its own that has ``command`` run in the background, forgets its tools, does ``then`` and ends.

    Returns the numbers that it printed, first that of the command's shell.
    """
    script = f"""
import asyncio, gc, os, sys, threading
from zq_notebook.toolio import ToolContext
from zq_notebook.tools.registry import ToolRegistry
from zq_notebook.tools.shell import register_shell_tool
def start():
    registry = ToolRegistry()
    register_shell_tool(registry, {str(workspace)!r})
    return asyncio.run(registry.call("run_shell", {{"command": {command!r}, "background": True}}, ToolContext()))
pid = int(start().text.split("process ")[1].split(")")[0])
print(pid, flush=True)
gc.collect()
"""
    done = subprocess.run(
        [sys.executable, "-c", script + then], capture_output=True, text=True, check=True, timeout=30, cwd=workspace
    )
    return [int(number) for number in done.stdout.split()]


def test_end_of_the_process_ends_background_tasks_whose_session_is_gone(tmp_path: Path) -> None:
    wait_until_gone(run_and_exit(tmp_path, "sleep 60"))


def test_end_of_the_process_ends_what_an_ended_task_left_running(tmp_path: Path) -> None:
    ended = """
for thread in threading.enumerate():
    if thread.name == "zq-shell-wait": thread.join()
print(open("child").read())
"""
    pids = run_and_exit(tmp_path, "sleep 60 & echo $! > child", ended)
    assert len(pids) == 2
    wait_until_gone(pids)


def test_forked_child_that_exits_leaves_background_tasks_alone(tmp_path: Path) -> None:
    fork = """
child = os.fork()
if not child: sys.exit()
os.waitpid(child, 0)
print(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] not in "ZX" and 1)
"""
    pid, still_ran = run_and_exit(tmp_path, "sleep 60", fork)
    assert still_ran
    wait_until_gone([pid])


# loops and threads


def test_works_on_a_loop_that_is_not_on_the_main_thread(shell_root: Shell) -> None:
    texts: list[str] = []

    def other_thread() -> None:
        texts.append(asyncio.run(shell_root.run("echo hello")).text)

    thread = threading.Thread(target=other_thread)
    thread.start()
    thread.join(10)
    assert texts == ["hello\n[exit code 0]"]


@pytest.fixture
def shell_root(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


async def test_loop_stays_free_while_a_command_runs(shell: Shell) -> None:
    running = asyncio.create_task(shell.run("sleep 0.3"))
    ticks = 0
    while not running.done():
        await asyncio.sleep(0.01)
        ticks += 1
    assert ticks > 10


async def test_overhead_over_the_bare_shell_is_small(shell: Shell) -> None:
    await shell.run("true")
    ours, bare = [], []
    for _ in range(15):
        started = time.perf_counter()
        await shell.run("true")
        ours.append(time.perf_counter() - started)
        started = time.perf_counter()
        await asyncio.to_thread(subprocess.run, list(shell_command("true")), check=True, stdin=subprocess.DEVNULL)
        bare.append(time.perf_counter() - started)
    assert min(ours) - min(bare) < 0.015


def test_process_has_a_group_of_its_own(tmp_path: Path) -> None:
    from zq_notebook.tools.capture import Capture

    process = ShellProcess("sleep 60", tmp_path, Capture(100, None), lambda: None)
    try:
        assert os.getpgid(process.pid) == process.pid != os.getpgid(0)
        assert os.getsid(process.pid) == process.pid
    finally:
        process.kill()
        process.finish()
    assert process.exit_code in (-signal.SIGTERM, -signal.SIGKILL)
