"""Where the output of the agent's code goes: into a :class:`Capture` instead of the cell.

Output is routed by *whose* it is, not by swapping ``sys.stdout``: a context variable marks the code that runs for the
agent and every task it starts, and a thread that was born while it ran counts as its own. Everything else, widget
callbacks and the user's own threads included, prints into the cell as before.
"""

from __future__ import annotations

import contextvars
import io
import os
import threading
import tokenize
from collections.abc import Mapping
from typing import Any

import msgspec

from zq_notebook.notebook.rich_output import IMAGE_TYPES, fits_card, image_bytes, label_of, words_of
from zq_notebook.text.terminal import BoundedText

_MAX_DISPLAYS = 200
_MAX_DISPLAY_BYTES = 64_000_000


class Shown(msgspec.Struct):
    """One display or result: its MIME bundle, and whether it went through to the cell."""

    bundle: dict[str, Any]
    display_id: str | None = None
    through: str | None = None


class Capture:
    """Collects what one piece of code puts out. Safe to use from any thread.

    ``code`` is the source, for the trailing-semicolon rule. ``fd_threads`` are the threads that read what child
    processes write to the kernel's file descriptors.
    """

    def __init__(self, code: str, fd_threads: tuple[threading.Thread, ...] = ()) -> None:
        self.stdout = BoundedText()
        self.stderr = BoundedText()
        self.result: Shown | None = None
        self.displays: list[Shown] = []
        self.displays_dropped = 0
        self.errors_shown: list[tuple[BaseException, str]] = []
        self.open = True
        self.quiet = _ends_with_semicolon(code)
        self._bytes = 0
        self._clear_next = False
        self._lock = threading.RLock()
        self._fd_threads = fd_threads
        self._earlier_threads = {id(thread): thread for thread in threading.enumerate()}

    def owns_thread(self, thread: threading.Thread) -> bool:
        """Whether ``thread`` was started by the code (or since it began), or carries its child processes' output."""
        return id(thread) not in self._earlier_threads or thread in self._fd_threads

    def write(self, channel: str, text: str) -> None:
        """Printed text; ``channel`` is ``stdout`` or ``stderr``."""
        self._before_output()
        (self.stdout if channel == "stdout" else self.stderr).write(text)

    def show(self, data: Mapping[str, Any], display_id: str | None, update: bool) -> bool:
        """A display. False when it has to go to the cell: too rich for a card, or the update of such a display."""
        self._before_output()
        with self._lock:
            if update:
                return self._update(data, display_id)
            shown = Shown(dict(data), display_id)
            if not fits_card(data):
                shown.through = label_of(data)
                shown.bundle = words_of(data)
            size = sum(_size(value) for value in shown.bundle.values())
            if len(self.displays) >= _MAX_DISPLAYS or self._bytes + size > _MAX_DISPLAY_BYTES:
                self.displays_dropped += 1
            else:
                self._bytes += size
                self.displays.append(shown)
        return shown.through is None

    def show_result(self, data: Mapping[str, Any]) -> bool:
        """The value of the last expression. False when it has to go to the cell as well."""
        self._before_output()
        shown = Shown(dict(data))
        if not fits_card(data):
            shown.through = label_of(data)
            shown.bundle = words_of(data)
        self.result = shown
        return shown.through is None

    def clear(self, wait: bool) -> None:
        """``clear_output``: forget what there is, at once or when something new comes."""
        if wait:
            self._clear_next = True
        else:
            self._forget()

    def images(self) -> list[tuple[bytes, str, str]]:
        """Every different picture as (data, MIME type, plain text), in order."""
        found: dict[bytes, tuple[bytes, str, str]] = {}
        for shown in [*self.displays, *([self.result] if self.result else [])]:
            kind = next((kind for kind in IMAGE_TYPES if kind in shown.bundle), None)
            data = image_bytes(shown.bundle.get(kind)) if kind else None
            if kind and data:
                found.setdefault(data, (data, kind, str(shown.bundle.get("text/plain", ""))))
        return list(found.values())

    def _before_output(self) -> None:
        if self._clear_next:
            self._clear_next = False
            self._forget()

    def _forget(self) -> None:
        with self._lock:
            self.stdout.clear()
            self.stderr.clear()
            self.displays = [shown for shown in self.displays if shown.through]
            self._bytes = 0

    def _update(self, data: Mapping[str, Any], display_id: str | None) -> bool:
        for shown in self.displays:
            if display_id is not None and shown.display_id == display_id and not shown.through:
                shown.bundle = dict(data)
                return True
        return False


def _leave_to_parent() -> None:
    """In a forked child nobody would ever read the captures; ipykernel passes on what a child writes."""
    for capture in _open_captures:
        capture.open = False
    _open_captures.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)

_active: contextvars.ContextVar[Capture | None] = contextvars.ContextVar("zq_capture", default=None)
_open_captures: list[Capture] = []


def begin(capture: Capture) -> contextvars.Token[Capture | None]:
    """From here on the output of this context goes to ``capture``."""
    _open_captures.append(capture)
    return _active.set(capture)


def end(capture: Capture, token: contextvars.Token[Capture | None] | None = None) -> None:
    """Close ``capture``: whatever its code still puts out from now on goes to the cell. From any thread."""
    capture.open = False
    if capture in _open_captures:
        _open_captures.remove(capture)
    if token is not None:
        _active.reset(token)


def current() -> Capture | None:
    """The capture that the calling code's output belongs to, or ``None``."""
    capture = _active.get()
    if capture is not None:
        return capture if capture.open else None
    if not _open_captures:
        return None
    thread = threading.current_thread()
    if thread is threading.main_thread():
        return None
    return next((capture for capture in reversed(_open_captures) if capture.owns_thread(thread)), None)


def aside() -> contextvars.Token[Capture | None]:
    """Let this context's output pass by its capture until :func:`back`."""
    return _active.set(_PASSING)


def back(token: contextvars.Token[Capture | None]) -> None:
    """End what :func:`aside` began."""
    _active.reset(token)


def in_agent_code() -> bool:
    """Whether the caller runs as part of code that the agent runs; an agent must not be started from there."""
    capture = _active.get()
    return capture is not None and capture.open


def _size(value: object) -> int:
    return len(value) if isinstance(value, (str, bytes)) else 1_000


def _ends_with_semicolon(code: str) -> bool:
    skipped = (tokenize.ENDMARKER, tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.DEDENT)
    try:
        tokens = [token for token in tokenize.generate_tokens(io.StringIO(code).readline) if token.type not in skipped]
    except (tokenize.TokenError, SyntaxError):
        return code.rstrip().endswith(";")
    return bool(tokens) and tokens[-1].string == ";"


_PASSING = Capture("")
_PASSING.open = False
