"""placeholder"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def objection_of_surroundings(words: Sequence[str], cwd: Path, workspace: Path) -> str | None:
    return None
