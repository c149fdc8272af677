"""Which commands may run without being asked about (Manual §8.4, §8.5)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from zq_notebook.permissions.commands import NotPlain, PlainCommand, parse_plain, starts_with
from zq_notebook.permissions.paths import UnusablePathError, is_inside, resolve
from zq_notebook.permissions.programs import objection, residual_objection, runs_anything
from zq_notebook.permissions.surroundings import objection_of_surroundings


class Exemptions:
    """The configured command prefixes and the programs allowed for the session."""

    def __init__(self, allowed_commands: Iterable[str] = ()) -> None:
        if isinstance(allowed_commands, str):
            allowed_commands = [allowed_commands]
        self.configured: tuple[str, ...] = tuple(allowed_commands)
        self.programs: set[str] = set()
        self._prefixes = [words for entry in self.configured if (words := _entry_words(entry))]

    def can_remember(self, command: str) -> bool:
        """Whether ``command`` is simple and its program one that may be allowed by name."""
        try:
            plain = parse_plain(command)
        except NotPlain:
            return False
        return not runs_anything(plain.program) and objection(plain.words) is None

    def add_prefix(self, entry: str) -> bool:
        """Exempt what begins with ``entry``; false, and nothing happens, when it is no plain command."""
        words = _entry_words(entry)
        if not words or runs_anything(words[0]):
            return False
        if words not in self._prefixes:
            self._prefixes.append(words)
            self.configured = (*self.configured, entry)
        return True

    def remove(self, entry: str) -> bool:
        """Take back a prefix or a program; false when there is none such."""
        words = _entry_words(entry)
        known = entry in self.programs or words in self._prefixes
        self.programs.discard(entry)
        self._prefixes = [prefix for prefix in self._prefixes if prefix != words]
        self.configured = tuple(e for e in self.configured if _entry_words(e) != words)
        return known

    def judge(self, command: str, cwd: Path, workspace: Path) -> tuple[str | None, str | None]:
        """Why ``command`` may run unasked in ``cwd``, or ``None``; and in that case what kept it from an exemption."""
        if not self._prefixes and not self.programs:
            return None, None
        try:
            plain = parse_plain(command)
        except NotPlain as error:
            return None, f"it contains {error}"
        return self._judge_plain(plain, cwd, workspace)

    def _judge_plain(self, plain: PlainCommand, cwd: Path, workspace: Path) -> tuple[str | None, str | None]:
        why_not: str | None = None
        for prefix in self._candidates(plain):
            why_not = residual_objection(plain.words, prefix) or objection_of_surroundings(plain.words, cwd, workspace)
            if why_not is None:
                return f"The command allowlist names '{' '.join(prefix)}'.", None
        return None, why_not

    def _candidates(self, plain: PlainCommand) -> Iterable[tuple[str, ...]]:
        for prefix in self._prefixes:
            if starts_with(plain.words, prefix):
                yield prefix
        if plain.program in self.programs:
            yield (plain.program,)


def _entry_words(entry: str) -> tuple[str, ...]:
    """The words of an allowlist entry; an entry that is not plain exempts nothing."""
    try:
        return parse_plain(entry).words
    except NotPlain:
        return ()


def judge_by_paths(command: str, cwd: Path, workspace: Path) -> bool:
    """The judgement without a sandbox: a simple command that names no place outside the workspace.

    It spares the user questions and is not a security boundary: what a program does is not known (Manual §8.4).
    """
    try:
        plain = parse_plain(command)
        if (
            runs_anything(plain.program)
            or objection(plain.words)
            or objection_of_surroundings(plain.words, cwd, workspace)
        ):
            return False
        return all(_stays_inside(word, cwd, workspace) for word in plain.arguments)
    except (NotPlain, UnusablePathError):
        return False


def _stays_inside(word: str, cwd: Path, workspace: Path) -> bool:
    """Whether every place that ``word`` may name, alone or as an option's value, is inside the workspace."""
    places = {word, word.partition("=")[2], word.partition(":")[2]}
    if word.startswith("-"):
        places.add(word[2:])
    return all(is_inside(resolve(place, cwd), workspace) for place in places if place)
