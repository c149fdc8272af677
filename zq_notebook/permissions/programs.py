"""placeholder"""

from __future__ import annotations

from collections.abc import Sequence


def runs_anything(program: str) -> bool:
    return False


def objection(words: Sequence[str]) -> str | None:
    return None


def residual_objection(words: Sequence[str], prefix: Sequence[str]) -> str | None:
    return None
