"""What around a command could make an allowed name do something else."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from zq_notebook.permissions.gitrepo import repository_risk
from zq_notebook.permissions.paths import is_inside

# These run the workspace's own code anyway, and a virtual environment in the workspace is the usual case.
_PROJECT_PROGRAMS = re.compile(r"(python|pip|pypy|node|npm|npx|pnpm|yarn|ruby|bundle|php|composer)[0-9.]*")


@lru_cache(maxsize=16)
def _search_path(value: str, workspace: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The directories of ``PATH`` inside the workspace, and the others. The shell tool uses no relative ones."""
    directories = [Path(os.path.realpath(item)) for item in value.split(os.pathsep) if os.path.isabs(item)]
    inside = tuple(item for item in directories if is_inside(item, workspace))
    return inside, tuple(item for item in directories if item not in inside)


def _shadowed(program: str, workspace: Path) -> bool:
    """Whether a file in the workspace takes the place of a program that also exists outside of it."""
    if "/" in program or _PROJECT_PROGRAMS.fullmatch(program):
        return False
    inside, outside = _search_path(os.environ.get("PATH", os.defpath), workspace)
    return any(os.path.lexists(directory / program) for directory in inside) and any(
        os.path.lexists(directory / program) for directory in outside
    )


def objection_of_surroundings(command: Sequence[str], cwd: Path, workspace: Path) -> str | None:
    """Why ``command``, harmless by its words, may not be so in ``cwd``, or ``None``."""
    program = command[0]
    if _shadowed(program, workspace):
        return f"a file in the workspace takes the place of the program {program}"
    if program.rsplit("/", 1)[-1] == "git" and tuple(command[1:]) != ("--version",):
        return repository_risk(cwd)
    return None
