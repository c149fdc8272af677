"""What holds for a session: the user's own choices, else traitlets, else environment."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Choices(msgspec.Struct, kw_only=True):
    """What ``%agent model``, ``role`` and ``mode`` chose for one session; empty means: as configured."""

    model: str = ""
    role: str = ""
    mode: str = ""


class Settings(msgspec.Struct, kw_only=True, frozen=True):
    """Everything that holds for a turn, but for the cell's own flags.

    ``workspace``, ``lang``, ``allowed_commands`` and ``shell_policy`` (Manual §8.4, §8.5) stay as they were when the
    conversation began; the others are looked up for each turn.
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
