"""What a session starts from: traitlets, environment, flags."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Settings(msgspec.Struct, kw_only=True):
    """The choices of one session. ``%agent model``, ``mode`` and ``role`` change them; a cell's flags win for its turn.

    ``allowed_commands`` and ``shell_policy`` as in Manual §8.4 and §8.5.
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
    log_dir: str | None
