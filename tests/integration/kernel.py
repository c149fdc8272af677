"""A real kernel for tests: started from this interpreter, spoken to over its own sockets.

with running_kernel() as kernel:
    reply = kernel.execute("1 + 1")           # waits for the end
    run = kernel.start("import time; print('on'); time.sleep(60)")
    run.wait_for("on")                        # waits for text on stdout
    kernel.interrupt()
    reply = run.finish()
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

TIMEOUT = 45.0


@dataclass
class Reply:
    """Everything a cell put out, and how it ended. ``displays`` are MIME bundles, ``messages`` all iopub messages."""

    stdout: str = ""
    stderr: str = ""
    displays: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] | None = None
    error: tuple[str, str] | None = None
    status: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The last expression's plain text."""
        return str((self.result or {}).get("text/plain", ""))


class Run:
    """A cell that is running."""

    def __init__(self, kernel: Kernel, msg_id: str) -> None:
        self._kernel = kernel
        self.msg_id = msg_id
        self.reply = Reply()
        self._idle = False

    def wait_for(self, text: str) -> None:
        """Read messages until ``text`` has been printed."""
        self._read_until(lambda: text in self.reply.stdout, f"{text!r} on stdout")

    def wait_for_message(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read messages, of whatever parent, until one is ``wanted``, and return it."""
        self._read_until(lambda: any(wanted(message) for message in self.reply.messages), "a message")
        return next(message for message in self.reply.messages if wanted(message))

    def finish(self) -> Reply:
        """Wait for the cell to end."""
        shell_reply = self._kernel.shell_reply(self.msg_id)
        self._read_until(lambda: self._idle, "idle")
        self.reply.status = shell_reply["content"]["status"]
        if self.reply.status == "error" and self.reply.error is None:
            self.reply.error = shell_reply["content"]["ename"], shell_reply["content"]["evalue"]
        return self.reply

    def _read_until(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT
        while not done():
            try:
                message = self._kernel.client.get_iopub_msg(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"waited in vain for {what}; so far: {self.reply}") from None
            self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        reply, content = self.reply, message["content"]
        reply.messages.append(message)
        if message["parent_header"].get("msg_id") != self.msg_id:
            return
        match message["msg_type"]:
            case "stream" if content["name"] == "stdout":
                reply.stdout += content["text"]
            case "stream":
                reply.stderr += content["text"]
            case "display_data" | "update_display_data":
                reply.displays.append(content["data"])
            case "execute_result":
                reply.result = content["data"]
            case "error":
                reply.error = content["ename"], content["evalue"]
            case "status" if content["execution_state"] == "idle":
                self._idle = True


class Kernel:
    """A started kernel with its client."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def start(self, code: str, *, allow_stdin: bool = False, store_history: bool = True) -> Run:
        """Send a cell and return at once."""
        return Run(self, self.client.execute(code, allow_stdin=allow_stdin, store_history=store_history))

    def execute(
        self, code: str, *, allow_stdin: bool = False, answers: tuple[str, ...] = (), check: bool = False
    ) -> Reply:
        """Run a cell to its end; ``answers`` are what the user types at each ``input()``.

        With ``check`` an error of the cell fails the test.
        """
        run = self.start(code, allow_stdin=allow_stdin or bool(answers))
        for answer in answers:
            self.client.get_stdin_msg(timeout=TIMEOUT)
            self.client.input(answer)
        reply = run.finish()
        assert not check or reply.status == "ok", f"{reply.error}\n{reply.stderr}\n{reply.stdout}"
        return reply

    def interrupt(self) -> None:
        """Press ■."""
        self.manager.interrupt_kernel()

    def signal(self) -> None:
        """SIGINT to the kernel's process alone."""
        self.manager.signal_kernel(signal.SIGINT)

    def shell_reply(self, msg_id: str) -> dict[str, Any]:
        """The reply to one request; those to others are dropped."""
        while True:
            message = self.client.get_shell_msg(timeout=TIMEOUT)
            if message["parent_header"].get("msg_id") == msg_id:
                return dict(message)

    def send(self, message_type: str, content: dict[str, Any]) -> str:
        """Send any message on the shell channel, as a widget in the browser does; returns its id."""
        message = self.client.session.msg(message_type, content)
        self.client.shell_channel.send(message)
        return str(message["header"]["msg_id"])


@contextlib.contextmanager
def running_kernel(*, env: dict[str, str] | None = None, cwd: str | None = None) -> Iterator[Kernel]:
    """A kernel with an IPython profile of its own, shut down at the end."""
    with tempfile.TemporaryDirectory(prefix="zq-kernel-") as home:
        spec = KernelSpec(
            argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            display_name="test",
            language="python",
        )
        manager = KernelManager(transport="ipc", connection_file=os.path.join(home, "kernel.json"))
        manager._kernel_spec = spec
        # ipykernel does not watch file descriptors when it believes that it runs inside pytest.
        inherited = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
        manager.start_kernel(
            env={**inherited, "IPYTHONDIR": home, "JUPYTER_RUNTIME_DIR": home, **(env or {})}, cwd=cwd or home
        )
        client = manager.blocking_client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=TIMEOUT)
            yield Kernel(manager, client)
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
            manager.cleanup_resources()
