"""IPython has no async cell magics: this makes the call of ``%%agent`` an awaited one (design: §2.1)."""

from __future__ import annotations

import re

_CALL = re.compile(r"get_ipython\(\)\.run_cell_magic\('agent',")


def await_agent_cell(lines: list[str]) -> list[str]:
    """An input transformer: puts ``await`` before the line that runs ``%%agent``.

    An awaited cell lets the kernel deliver clicks while it runs, and keeps the cells behind it queued.
    """
    if lines and _CALL.match(lines[0]):
        return [f"await {lines[0]}", *lines[1:]]
    return lines
