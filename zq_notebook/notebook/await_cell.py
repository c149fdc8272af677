"""IPython has no async cell magics: this makes the call of ``%%agent`` an awaited one (design: §2.1)."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import PurePath

from IPython.core.getipython import get_ipython

_CALL = re.compile(r"get_ipython\(\)\.run_cell_magic\('agent',")
_EMPTY_BODY = re.compile(r", ''\)$", re.MULTILINE)
_BLANK_BODY = r", '\\n')"


def await_agent_cell(lines: list[str]) -> list[str]:
    """An input transformer: puts ``await`` before the line that runs ``%%agent``.

    An awaited cell lets the kernel deliver clicks while it runs, and keeps the cells behind it queued. Inside another
    cell (``%%time``, ``%%capture``, ``run_cell`` from code), or with ``%autoawait off``, nothing can be awaited; there
    the magic runs to its end by itself. An empty body becomes a blank line, because IPython's own complaint about it
    would name the wrong remedy.
    """
    if not lines or not _CALL.match(lines[0]):
        return lines
    call = _EMPTY_BODY.sub(_BLANK_BODY, lines[0])
    return [f"await {call}" if _can_await() else call, *lines[1:]]


def _can_await() -> bool:
    if _inside_running_code():
        return False
    shell = get_ipython()
    if shell is None:
        return True
    # Without a kernel the shell needs a loop of its own to await something, which it cannot have inside another one.
    return bool(shell.autoawait) and (hasattr(shell, "kernel") or asyncio._get_running_loop() is None)


def _inside_running_code() -> bool:
    """Whether it is the code of a cell that has this transformed."""
    frame = sys._getframe()
    while (caller := frame.f_back) is not None:
        frame = caller
        if frame.f_code.co_name == "run_code" and PurePath(frame.f_code.co_filename).name == "interactiveshell.py":
            return True
    return False
