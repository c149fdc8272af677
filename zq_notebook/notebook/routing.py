"""The places in IPython and ipykernel where output passes by, and the detour through :func:`capture.current`.

Each detour shadows one attribute of one object as long as at least one capture is open, asks whose output it is, and
calls what was there before when it is nobody's it knows. The objects stay the same, so that a logger that holds on to
``sys.stderr`` is heard too.
"""

from __future__ import annotations

import builtins
import getpass
import sys
import threading
from collections.abc import Callable
from typing import Any

from zq_notebook.notebook import capture as capturing
from zq_notebook.notebook.short_traceback import describe
from zq_notebook.text.redact import shared

_ABSENT = object()
Replacement = Callable[..., Any]


class ExitRefusedError(SystemExit):
    """``exit()`` in the agent's code; it would have ended the user's kernel."""


class Routing:
    """The detours of one shell, counted: set up for the first capture and taken away after the last."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._users = 0
        self._lock = threading.Lock()
        self._shadows: list[tuple[Any, str, object, object]] = []

    def __enter__(self) -> Routing:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._set_up()
        return self

    def __exit__(self, *exc: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._take_away()

    def _shadow(self, owner: Any, name: str, make: Callable[[Replacement], Replacement]) -> None:
        original = getattr(owner, name, None)
        if original is None:
            return
        before = vars(owner).get(name, _ABSENT) if hasattr(owner, "__dict__") else _ABSENT
        replacement = make(original)
        try:
            setattr(owner, name, replacement)
        except AttributeError:
            return  # a stream without room for attributes: its output stays in the cell
        self._shadows.append((owner, name, before, replacement))

    def _take_away(self) -> None:
        for owner, name, before, replacement in reversed(self._shadows):
            if vars(owner).get(name) is not replacement:
                continue  # someone else has replaced it since, and will put back what they found
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._shadows.clear()

    def _set_up(self) -> None:
        shell = self._shell
        for channel in ("stdout", "stderr"):
            stream = getattr(sys, channel)
            self._shadow(stream, "write", lambda old, channel=channel: _writer(old, channel))  # type: ignore[misc]
            for name in ("flush", "close"):  # the streams are the user's, and must stay open
                self._shadow(stream, name, _skipped)
        self._shadow(shell.display_pub, "publish", _publisher)
        self._shadow(shell.display_pub, "clear_output", _clearer)
        publish = shell.display_pub.publish
        hook = shell.displayhook
        self._shadow(hook, "quiet", _quiet)
        self._shadow(hook, "write_format_data", lambda old: _result_writer(old, publish))
        for name in ("start_displayhook", "write_output_prompt", "finish_displayhook", "update_user_ns", "log_output"):
            self._shadow(hook, name, _skipped)  # and so neither _ nor Out change under the user's hands
        for name in ("showtraceback", "showsyntaxerror", "showindentationerror"):
            self._shadow(shell, name, lambda old: _traceback_shower(old, shell))
        self._shadow(shell, "ask_exit", _exit_refuser)
        self._shadow(shell, "set_next_input", _skipped)
        self._shadow(shell.payload_manager, "write_payload", _pager)
        self._shadow(builtins, "input", _input_refuser)
        self._shadow(getpass, "getpass", _input_refuser)
        self._shadow(sys, "breakpointhook", _input_refuser)


def _skipped(original: Replacement) -> Replacement:
    def skip(*args: Any, **kwargs: Any) -> Any:
        return None if capturing.current() is not None else original(*args, **kwargs)

    return skip


def _writer(original: Replacement, channel: str) -> Replacement:
    def write(text: str) -> Any:
        capture = capturing.current()
        if capture is None:
            return original(text)
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        capture.write(channel, text)
        return len(text)

    return write


def _publisher(original: Replacement) -> Replacement:
    def publish(data: Any, metadata: Any = None, *args: Any, **kwargs: Any) -> Any:
        capture = capturing.current()
        if capture is not None and isinstance(data, dict):
            display_id = (kwargs.get("transient") or {}).get("display_id")
            if capture.show(data, display_id, bool(kwargs.get("update"))):
                return None
            data = shared().redact_data(data)  # what a card shows is masked with the tool's output
        return original(data, metadata, *args, **kwargs)

    return publish


def _clearer(original: Replacement) -> Replacement:
    def clear_output(wait: bool = False) -> Any:
        capture = capturing.current()
        return original(wait) if capture is None else capture.clear(wait)

    return clear_output


def _quiet(original: Replacement) -> Replacement:
    def quiet() -> Any:
        # IPython looks at the last cell in the history, which is the %%agent cell.
        capture = capturing.current()
        return original() if capture is None else capture.quiet

    return quiet


def _result_writer(original: Replacement, publish: Replacement) -> Replacement:
    def write_format_data(format_dict: Any, md_dict: Any = None) -> Any:
        capture = capturing.current()
        if capture is None:
            return original(format_dict, md_dict)
        if not capture.show_result(format_dict):
            token = capturing.aside()
            try:
                publish(shared().redact_data(format_dict), md_dict)
            finally:
                capturing.back(token)
        return None

    return write_format_data


def _traceback_shower(original: Replacement, shell: Any) -> Replacement:
    def show(*args: Any, **kwargs: Any) -> Any:
        capture = capturing.current()
        if capture is None:
            return original(*args, **kwargs)
        given = args[0] if args and isinstance(args[0], tuple) else kwargs.get("exc_tuple")
        error = given[1] if given else sys.exc_info()[1]
        if error is not None:
            sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
            capture.errors_shown.append((error, describe(error, shell).as_text()))
        return None

    return show


def _exit_refuser(original: Replacement) -> Replacement:
    def ask_exit(*args: Any, **kwargs: Any) -> Any:
        if capturing.current() is None:
            return original(*args, **kwargs)
        raise ExitRefusedError("exit() ends the code, but not the kernel: the kernel belongs to the user.")

    return ask_exit


def _pager(original: Replacement) -> Replacement:
    def write_payload(data: Any, single: bool = True) -> Any:
        capture = capturing.current()
        if capture is None:
            return original(data, single)
        if isinstance(data, dict) and data.get("source") == "page":
            text = data.get("data", {}).get("text/plain", "")
            capture.write("stdout", f"{text}\n")
        return None

    return write_payload


def _input_refuser(original: Replacement) -> Replacement:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if capturing.current() is None:
            return original(*args, **kwargs)
        from IPython.core.error import StdinNotImplementedError

        raise StdinNotImplementedError(
            "Code that the agent runs cannot ask for input: nobody would see the question. Put the value into the "
            "code, or ask the user first (ask_user) and then run the code with the answer."
        )

    return refuse
