"""Which files .gitignore leaves out, and a walk over the others in a fixed order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_MAX_IGNORE_BYTES = 1024 * 1024
# Git's files and the agent's own: found only by who names them.
ALWAYS_SKIPPED = (".agent", ".git")


def repository_root(place: Path) -> Path | None:
    """The root of the git repository that ``place`` is in."""
    return next((directory for directory in (place, *place.parents) if os.path.lexists(directory / ".git")), None)


class _Rules:
    """The .gitignore of one directory."""

    __slots__ = ("_base", "_spec")

    def __init__(self, base: str, spec: GitIgnoreSpec) -> None:
        self._base = base
        self._spec = spec

    def verdict(self, path: str, is_dir: bool) -> bool | None:
        """Whether ``path`` (absolute) is left out here; ``None`` when no pattern says anything."""
        relative = path[len(self._base) :].replace(os.sep, "/")
        return self._spec.check_file(relative + "/" if is_dir else relative).include


def _rules_of(directory: str) -> _Rules | None:
    try:
        with open(os.path.join(directory, ".gitignore"), "rb") as file:
            text = file.read(_MAX_IGNORE_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    from pathspec import GitIgnoreSpec

    return _Rules(directory.rstrip(os.sep) + os.sep, GitIgnoreSpec.from_lines(text.splitlines()))


class Ignore:
    """The rules that hold in one place: those of the directories above it, up to the repository's root, and its own.

    Outside of a repository only the workspace's own .gitignore counts from above. A home directory that is under
    version control by way of ``*`` in its .gitignore does not hide everything below it.
    """

    def __init__(self, place: Path, workspace: Path) -> None:
        root = repository_root(place)
        if root is not None:
            above = [root, *reversed([parent for parent in place.parents if root in parent.parents])]
        else:
            above = [workspace] if workspace in place.parents else []
        if place in above:
            above.remove(place)
        self._above = [rules for directory in above if (rules := _rules_of(str(directory))) is not None]

    def rules(self) -> list[_Rules]:
        """The rules from above, outermost first."""
        return list(self._above)

    def hides(self, place: Path) -> bool:
        """Whether ``place`` itself is left out by the rules above it."""
        return _hidden(str(place), place.is_dir(), self._above)


def _hidden(path: str, is_dir: bool, rules: list[_Rules]) -> bool:
    for rule in reversed(rules):
        verdict = rule.verdict(path, is_dir)
        if verdict is not None:
            return verdict
    return False


def walk(
    place: Path,
    workspace: Path,
    *,
    ignored: bool = False,
    depth: int | None = None,
    wanted: Callable[[str], bool] | None = None,
) -> Iterator[os.DirEntry[str]]:
    """Entries below ``place`` in order of their names, each directory before what is in it; links are not followed.

    ``ignored`` includes what .gitignore leaves out, ``wanted(path)`` what it names of that. A ``place`` that is itself
    left out is walked as if nothing were, since it was named on purpose. What cannot be read is passed over.
    """
    ignore = Ignore(place, workspace)
    everything = ignored or ignore.hides(place)
    yield from _walk(str(place), [] if everything else ignore.rules(), everything, depth, wanted)


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as scan:
            return sorted(scan, key=lambda entry: entry.name)
    except OSError:
        return []


def _walk(
    place: str, rules: list[_Rules], everything: bool, depth: int | None, wanted: Callable[[str], bool] | None
) -> Iterator[os.DirEntry[str]]:
    def open_directory(directory: str, above: list[_Rules]) -> tuple[Iterator[os.DirEntry[str]], list[_Rules]]:
        own = None if everything else _rules_of(directory)
        return iter(_entries(directory)), above if own is None else [*above, own]

    # A stack of our own: directories can be nested more deeply than Python's calls.
    stack = [open_directory(place, rules)]
    while stack:
        entries, current = stack[-1]
        entry = next(entries, None)
        if entry is None:
            stack.pop()
            continue
        if entry.name in ALWAYS_SKIPPED:
            continue
        is_dir = entry.is_dir(follow_symlinks=False)
        if current and _hidden(entry.path, is_dir, current) and not (wanted is not None and wanted(entry.path)):
            continue
        yield entry
        if is_dir and (depth is None or len(stack) < depth):
            stack.append(open_directory(entry.path, current))


class Glob:
    """A file pattern in gitignore's notation: ``*.py`` anywhere, ``src/**/*.py`` from the start; ``!x`` leaves out."""

    def __init__(self, pattern: str) -> None:
        from pathspec import GitIgnoreSpec

        negated = pattern.startswith("!")
        self.negated = negated
        self._spec = GitIgnoreSpec.from_lines([pattern[1:] if negated else pattern])

    def matches(self, relative: str) -> bool:
        """Whether a path, relative and with slashes, fits."""
        return self._spec.match_file(relative) != self.negated
