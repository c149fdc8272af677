"""Running a piece of code as a cell, with everything it puts out collected for a model."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from zq_notebook.notebook import capture as capturing
from zq_notebook.notebook import short_traceback
from zq_notebook.notebook.capture import Capture, Shown
from zq_notebook.notebook.figures import own_figures
from zq_notebook.notebook.rich_output import IMAGE_TYPES, bounded_image, readable
from zq_notebook.notebook.routing import Routing
from zq_notebook.notebook.short_traceback import CodeError, with_places
from zq_notebook.notebook.sigint import uninterrupted
from zq_notebook.text.terminal import plain
from zq_notebook.text.truncate import clip_middle
from zq_notebook.toolio import ImageData

MAX_RESULT_CHARS = 20_000
MAX_DISPLAY_CHARS = 4_000
MAX_IMAGES = 20
_DRAIN_SECONDS = 0.25
_KEPT = ("stdout", "stderr", "displayhook", "excepthook")
_NESTED = re.compile(r"run_(?:cell|line)_magic\(\s*['\"]agent['\"]")
_ADDRESS = re.compile(r"(?<= at )0x[0-9a-fA-F]{5,16}(?=>)")  # in <Line2D object at 0x7f…>
_EXIT_WARNING = re.compile(r"^.*UserWarning: To exit: use 'exit', 'quit', or Ctrl-D\.\n(?:  warn\(.*\n)?", re.MULTILINE)


class CodeOutcome(msgspec.Struct, kw_only=True):
    """What a piece of code did.

    ``stdout`` and ``stderr`` are plain text, shortened in the middle (``stdout_dropped``, ``stderr_dropped``
    characters). ``result`` is the last expression's text, ``result_html`` its table form when a card can show it.
    ``displays`` are the other displays as text, ``display_html`` those that are tables, ``images`` all pictures, made
    smaller where needed (``images_omitted`` could not be). ``passed_through`` names what was shown in the cell itself.
    ``stop_reason`` says who stopped it (``"user"``, ``"timeout"``, ``"cancelled"``), ``interrupted`` that the user did,
    ``still_running`` that it ignored that. ``duration`` is in seconds.
    """

    stdout: str = ""
    stderr: str = ""
    result: str | None = None
    result_html: str | None = None
    displays: tuple[str, ...] = ()
    display_html: tuple[str, ...] = ()
    images: tuple[ImageData, ...] = ()
    passed_through: tuple[str, ...] = ()
    error: CodeError | None = None
    duration: float = 0.0
    stdout_dropped: int = 0
    stderr_dropped: int = 0
    images_omitted: int = 0
    displays_omitted: int = 0
    stop_reason: str | None = None
    still_running: bool = False

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it."""
        return self.stop_reason in ("user", "cancelled")


class CodeRun:
    """One execution. :meth:`execute` is the job for the main thread; the rest may be called from any thread."""

    def __init__(self, shell: Any, code: str) -> None:
        self._shell = shell
        self._code = code
        self._capture = Capture(code, _fd_threads())
        self._error: BaseException | None = None
        self._described: CodeError | None = None
        self._name = ""
        self._started = time.perf_counter()
        self._seconds: float | None = None

    async def execute(self) -> None:
        """Run the code with the semantics of a cell. Errors of the code are kept, not raised."""
        shell, capture = self._shell, self._capture
        self._started = time.perf_counter()
        kept = {name: getattr(sys, name) for name in _KEPT}
        get_ipython = shell.user_ns.get("get_ipython")
        token = capturing.begin(capture)
        try:
            with _routing_of(shell), own_figures() as flush:
                try:
                    await self._run_cell(flush)
                except BaseException as error:
                    self._error = self._error or error
                with uninterrupted():
                    self._seconds = time.perf_counter() - self._started
                    self._put_back(kept)
                    if "get_ipython" in shell.user_ns:  # without it no magic of the user's works, this one included
                        shell.user_ns["get_ipython"] = get_ipython
                    await _drain((sys.stdout, sys.stderr))
        finally:
            with uninterrupted():
                capturing.end(capture, token)
                if self._error is not None:
                    self._described = short_traceback.describe(self._error, shell)
                    self._error = None  # its frames would keep everything alive that the code held

    def give_up(self) -> None:
        """The code ignored its interruption: what it still puts out goes to the cell."""
        capturing.end(self._capture)

    def outcome(self, stop_reason: str | None = None, *, still_running: bool = False) -> CodeOutcome:
        """What there is, now. May take a moment when pictures have to be made smaller."""
        capture = self._capture
        images, omitted = self._images()
        shown = [*capture.displays]
        stderr = _EXIT_WARNING.sub("", capture.stderr.value())
        for _, text in capture.errors_shown[:5]:
            if self._described is None or text != self._described.as_text():
                stderr += f"{text}\n"
        result = capture.result
        seconds = self._seconds
        return CodeOutcome(
            stdout=self._steady(capture.stdout.value()),
            stderr=self._steady(stderr),
            result=None if result is None else clip_middle(self._steady(_text_of(result)), MAX_RESULT_CHARS),
            result_html=_html_of(result) if result else None,
            displays=tuple(
                clip_middle(self._steady(text), MAX_DISPLAY_CHARS) for item in shown if (text := _text_of(item))
            ),
            display_html=tuple(html for item in shown if (html := _html_of(item)) is not None),
            images=images,
            passed_through=tuple(item.through for item in [*shown, *([result] if result else [])] if item.through),
            error=self._described,
            duration=time.perf_counter() - self._started if seconds is None else seconds,
            stdout_dropped=capture.stdout.dropped,
            stderr_dropped=capture.stderr.dropped,
            images_omitted=omitted,
            displays_omitted=capture.displays_dropped,
            stop_reason=stop_reason,
            still_running=still_running,
        )

    def _steady(self, text: str) -> str:
        """``text`` without what differs from kernel to kernel and means nothing: addresses, and the names of cells."""
        return with_places(_ADDRESS.sub("0x…", text), self._shell, self._name)

    async def _run_cell(self, flush: Any) -> None:
        shell, code = self._shell, self._code
        problem = None
        try:
            transformed = shell.transform_cell(code)
        except Exception:
            transformed, problem = code, sys.exc_info()
        if _NESTED.search(transformed):
            self._described = CodeError(
                "UsageError",
                "Code that the agent runs cannot start or steer an agent (%agent, %%agent). Do the step directly.",
            )
            return
        self._name = shell.compile.get_code_name(code, transformed, shell.execution_count)
        short_traceback.running.set(self._name)
        result = None
        try:
            result = await shell.run_cell_async(
                code,
                store_history=False,
                silent=False,
                transformed_cell=transformed,
                preprocessing_exc_tuple=problem,
            )
            self._error = result.error_before_exec or result.error_in_exec
        finally:
            flush()
            shell.events.trigger("post_execute")
            shell.events.trigger("post_run_cell", result)

    def _put_back(self, kept: Mapping[str, Any]) -> None:
        """Undo what the code did to the hooks that the user's cells need."""
        replaced = [name for name, value in kept.items() if getattr(sys, name, None) is not value]
        for name in replaced:
            setattr(sys, name, kept[name])
        if replaced:
            names = ", ".join(f"sys.{name}" for name in replaced)
            self._capture.stderr.write(f"(The code replaced {names}; the originals have been put back.)\n")

    def _images(self) -> tuple[tuple[ImageData, ...], int]:
        found = self._capture.images()
        bounded = [bounded_image(data, kind, plain(alt).strip("<>")[:100]) for data, kind, alt in found[:MAX_IMAGES]]
        kept = tuple(image for image in bounded if image is not None)
        return kept, len(found) - len(kept)


_routings: dict[int, Routing] = {}


def _routing_of(shell: Any) -> Routing:
    return _routings.setdefault(id(shell), Routing(shell))


def _fd_threads() -> tuple[threading.Thread, ...]:
    """The threads in which ipykernel reads what child processes write to the kernel's own file descriptors."""
    found = (getattr(stream, "watch_fd_thread", None) for stream in (sys.stdout, sys.stderr))
    return tuple(thread for thread in found if thread is not None)


async def _drain(streams: tuple[Any, ...]) -> None:
    """Wait until what child processes wrote has come through ipykernel's pipes, 0.25 s at most."""
    pipes = [fd for stream in streams if isinstance(fd := getattr(stream, "_fid", None), int)]
    if not pipes:
        return
    import array
    import fcntl
    import termios

    pending = array.array("i", [0])

    def waiting() -> bool:
        for fd in pipes:
            fcntl.ioctl(fd, termios.FIONREAD, pending)
            if pending[0]:
                return True
        return False

    deadline = time.perf_counter() + _DRAIN_SECONDS
    while waiting() and time.perf_counter() < deadline:  # noqa: ASYNC110 - a pipe that someone else reads has no event
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.001)  # the reader may hold the last piece between its read and its write


def _text_of(shown: Shown) -> str:
    text = plain(readable(shown.bundle))
    pictured = any(kind in shown.bundle for kind in IMAGE_TYPES)
    return "" if pictured and text.startswith("<") else text  # the name of a figure is said where it is attached


def _html_of(shown: Shown) -> str | None:
    if shown.through is not None or any(kind.startswith("image/") for kind in shown.bundle):
        return None
    html = shown.bundle.get("text/html")
    return html if isinstance(html, str) else None
