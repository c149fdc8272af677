"""Tab completion for ``%agent`` and for the first line of ``%%agent``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from zq_notebook.notebook.cell_line import FLAGS, MODES

if TYPE_CHECKING:
    from zq_notebook.notebook.magics import AgentMagics


@context_matcher(identifier="zq_notebook.agent")  # type: ignore[untyped-decorator]
def complete_agent(context: CompletionContext) -> SimpleMatcherResult:
    """Commands, flags, and the values that go with them."""
    words = context.text_until_cursor.split(" ")
    current = words[-1]
    if len(words) < 2 or (context.cursor_line != 0 and words[0] == "%%agent"):
        return _nothing()
    if words[0] == "%%agent":
        found = _for_cell([w for w in words[1:-1] if w], current)
    elif words[0] == "%agent":
        found = _for_line([w for w in words[1:-1] if w], current)
    else:
        return _nothing()
    matches = [word for word in found if word.startswith(current)]
    return {
        "completions": [SimpleCompletion(text=word, type="magic") for word in matches],
        "matched_fragment": current,
        # Nothing else (file names, variables) makes sense at this place.
        "suppress": True,
    }


def _nothing() -> SimpleMatcherResult:
    return {"completions": [], "suppress": False}


def _for_cell(before: list[str], current: str) -> list[str]:
    flag = next((f for f in FLAGS if before and before[-1] in f.names and f.value is not None), None)
    if flag is None:
        return [name for f in FLAGS for name in f.names]
    values = {"model": _models, "role": _roles, "mode": lambda: list(MODES), "session": _sessions}
    if flag.field == "attach":
        return _files(current)
    find = values.get(flag.field)
    return find() if find is not None else []


def _for_line(before: list[str], current: str) -> list[str]:
    from zq_notebook.notebook.commands import COMMANDS

    if not before:
        return list(COMMANDS)
    values: dict[str, Callable[[], list[str]]] = {
        "model": _models,
        "role": _roles,
        "mode": lambda: list(MODES),
        "new": _sessions,
        "allow": _tools,
        "disallow": _allowed,
        "autoload": lambda: ["on", "off"],
    }
    find = values.get(before[0])
    return find() if find is not None and len(before) == 1 else []


def _magics() -> AgentMagics | None:
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    return shell.magics_manager.registry.get("AgentMagics") if shell is not None else None


def _models() -> list[str]:
    from zq_notebook.assembly import registered_models

    magics = _magics()
    chosen = {magics.default_model} if magics is not None else set()
    return sorted({*registered_models(), *chosen} - {""})


def _roles() -> list[str]:
    magics = _magics()
    return list(magics.service.roles.names()) if magics is not None else []


def _sessions() -> list[str]:
    magics = _magics()
    return magics.service.session_names() if magics is not None else []


def _tools() -> list[str]:
    magics = _magics()
    return [name for name, _, _ in magics.service.tools()] if magics is not None else []


def _allowed() -> list[str]:
    magics = _magics()
    return [name.removeprefix("run_shell ") for name in magics.service.allowances()] if magics is not None else []


def _files(current: str) -> list[str]:
    folder, _, _ = current.rpartition("/")
    try:
        entries = sorted(os.scandir(Path(folder or ".").expanduser()), key=lambda e: e.name)
    except OSError:
        return []
    prefix = f"{folder}/" if folder else ""
    return [f"{prefix}{e.name}{'/' if e.is_dir() else ''}" for e in entries if not e.name.startswith(".")]
