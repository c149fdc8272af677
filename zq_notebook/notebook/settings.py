"""What a session starts from: traitlets, environment, flags."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Settings(msgspec.Struct, kw_only=True):
    """The choices of one session. ``%agent model``, ``mode`` and ``role`` change them; flags on a cell win for its turn.

    ``allowed_commands`` and ``shell_policy`` as in Manual §8.4 and §8.5, ``unattended`` (``deny``, ``allow`` or
    ``error``) says what happens to an approval when nobody is there.
    """

    model: str
    role: str
    mode: str
    workspace: Path
    lang: str
    max_iterations: int
    reasoning_effort: str | None
    allowed_commands: tuple[str, ...]
    shell_policy: str
    unattended: str
    log_dir: str | None
