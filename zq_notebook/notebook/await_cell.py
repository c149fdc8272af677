"""IPython has no async cell magics: this makes the call of ``%%agent`` an awaited one (design: §2.1)."""

from __future__ import annotations

import re

_CALL = re.compile(r"get_ipython\(\)\.run_cell_magic\('agent',")
_EMPTY_BODY = re.compile(r", ''\)$", re.MULTILINE)
_BLANK_BODY = r", '\\n')"


def await_agent_cell(lines: list[str]) -> list[str]:
    """An input transformer: puts ``await`` before the line that runs ``%%agent``.

    An awaited cell lets the kernel deliver clicks while it runs, and keeps the cells behind it queued. An empty body
    becomes a blank line, because IPython's own complaint about it would name the wrong remedy.
    """
    if not lines or not _CALL.match(lines[0]):
        return lines
    return [f"await {_EMPTY_BODY.sub(_BLANK_BODY, lines[0])}", *lines[1:]]
