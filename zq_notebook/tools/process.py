"""One shell command as a process group of its own, whose end can be waited for and brought about."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from zq_notebook.errors import ToolError
from zq_notebook.tools.capture import Capture
from zq_notebook.tools.shell_env import scrubbed_environment, shell_command

_MARK = "ZQ_SHELL_TASK"
_TERM_GRACE = 0.1  # seconds between asking a group to end and ending it
_DRAIN = 0.3  # seconds to wait for the last output once the shell is gone


class ShellProcess:
    """A started command. Reading its output and waiting for its end each have a thread, so that no event loop, child
    watcher or signal handler is involved: it works from any thread, on any loop.

    ``on_change`` is called, from those threads, when there is output and when the process has ended.
    """

    def __init__(self, command: str, cwd: Path, capture: Capture, on_change: Callable[[], object]) -> None:
        self.capture = capture
        self._on_change = on_change
        self._mark = uuid.uuid4().hex
        self.ended = threading.Event()
        self._drained = threading.Event()
        self._ending = threading.Lock()
        self._process = self._start(command, cwd)
        _unfinished.add(self)
        threading.Thread(target=self._read, name="zq-shell-read", daemon=True).start()
        threading.Thread(target=self._wait, name="zq-shell-wait", daemon=True).start()

    def _start(self, command: str, cwd: Path) -> subprocess.Popen[bytes]:
        environment = scrubbed_environment() | {_MARK: self._mark}
        flags = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) if sys.platform == "win32" else 0
        try:
            return subprocess.Popen(
                shell_command(command),
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=sys.platform != "win32",
                creationflags=flags,
                bufsize=0,
            )
        except ValueError as error:
            raise ToolError(f"The command cannot be run: {error}.") from None
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not cwd.is_dir():
                raise ToolError(f"The working directory {cwd} does not exist.") from None
            hint = " Put it into a script file and run that." if len(command) > 100_000 else ""
            raise ToolError(f"The command cannot be run: {error.strerror or error}.{hint}") from None

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with stream:
            while data := os.read(stream.fileno(), 65536):
                self.capture.write(data)
                self._on_change()
        self._drained.set()
        self._on_change()

    def _wait(self) -> None:
        self._process.wait()
        self.ended.set()
        self._on_change()
        if not self._group_alive():
            _unfinished.discard(self)

    @property
    def pid(self) -> int:
        """The process id of the shell, which is also that of its group."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; ``None`` while the command runs."""
        return self._process.returncode if self.ended.is_set() else None

    def kill(self) -> None:
        """End the command and everything that it started, at the latest after a fraction of a second."""
        with self._ending:
            if self.ended.is_set():
                return
            strays = self._descendants()
            self._signal(signal.SIGTERM, strays)
            if not self.ended.wait(_TERM_GRACE) or strays or self._group_alive():
                self._signal(getattr(signal, "SIGKILL", signal.SIGTERM), strays | self._descendants())
            self.ended.wait(1.0)

    def finish(self) -> bool:
        """After the end: take in the last output, and end what was left running. Whether anything was."""
        left = sys.platform != "win32" and self._group_alive()
        if left:
            self._signal(signal.SIGTERM, set())
            if not self._drained.wait(_TERM_GRACE) or self._group_alive():
                self._signal(signal.SIGKILL, set())
        self._drained.wait(_DRAIN)
        self.capture.close()
        _unfinished.discard(self)
        return left

    def _group_alive(self) -> bool:
        if sys.platform == "win32":
            return False
        try:
            os.killpg(self.pid, 0)
        except OSError:
            return False
        return _has_living_member(self.pid)

    def _signal(self, number: int, strays: set[int]) -> None:
        if sys.platform == "win32":
            subprocess.run(
                ["taskkill", "/T", "/F", "/PID", str(self.pid)], capture_output=True, check=False, timeout=10
            )
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        for pid in strays:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def _descendants(self) -> set[int]:
        """Processes of this command that left its group, found by a mark in their environment (Linux)."""
        found: set[int] = set()
        mark = f"{_MARK}={self._mark}".encode()
        with contextlib.suppress(OSError):
            for entry in os.scandir("/proc"):
                if not entry.name.isdigit() or int(entry.name) == os.getpid():
                    continue
                with contextlib.suppress(OSError), open(f"/proc/{entry.name}/environ", "rb") as file:
                    if mark in file.read(256 * 1024):
                        found.add(int(entry.name))
        return found


# Whatever became of the tools that started them: a command does not outlive this process.
_unfinished: set[ShellProcess] = set()


@atexit.register
def _end_all() -> None:
    for process in list(_unfinished):
        process.kill()
        process.finish()


if hasattr(os, "register_at_fork"):
    # A forked child that exits in the ordinary way must not end what belongs to its parent.
    os.register_at_fork(after_in_child=_unfinished.clear)


def _has_living_member(group: int) -> bool:
    """Whether a process of the group still runs. Dead ones that nobody has collected yet count as gone (Linux)."""
    try:
        entries = [entry.name for entry in os.scandir("/proc") if entry.name.isdigit()]
    except OSError:
        return True
    for pid in entries:
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:
            # The name, in parentheses, may itself contain spaces and parentheses.
            state, _parent, member_of = file.read(4096).rpartition(b")")[2].split()[:3]
            if int(member_of) == group and state not in (b"Z", b"X"):
                return True
    return not entries
