"""Where a path argument really leads, and whether that is inside the workspace (design.md §7)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

# The words of an argument's name that make its value a place to write to.
PATH_WORDS = frozenset(
    (
        *("path", "paths", "file", "files", "filename", "filenames", "filepath", "filepaths", "dir", "dirs"),
        *("directory", "directories", "folder", "folders", "target", "targets", "dest", "destination"),
        *("destinations", "dst", "to"),
    )
)
# Directories that decide what may run or be written later: the agent's own settings, and git's configuration and hooks.
PROTECTED_NAMES = frozenset({".agent", ".git"})
_MAX_DEPTH = 8


class UnusablePathError(ValueError):
    """A path that no file system can mean, such as one with a NUL in it."""


def _words(name: str) -> list[str]:
    """The words of an argument name, in whichever of the usual spellings."""
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().replace("-", "_").split("_")


def _strings(value: object, depth: int) -> Iterator[str]:
    """Every string inside ``value``; keys of mappings count too, since ``files={"a.txt": …}`` names a file."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, os.PathLike):
        yield os.fsdecode(value)
    elif depth < _MAX_DEPTH:
        if isinstance(value, Mapping):
            for key, item in value.items():
                yield str(key)
                if isinstance(item, (Mapping, list, tuple)):
                    yield from _strings_of_paths(item, depth + 1)
        elif isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, Mapping):
                    yield from _strings_of_paths(item, depth + 1)
                else:
                    yield from _strings(item, depth + 1)


def _strings_of_paths(value: object, depth: int) -> Iterator[str]:
    if depth >= _MAX_DEPTH:
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            if PATH_WORDS.intersection(_words(str(key))):
                yield from _strings(item, depth)
            elif isinstance(item, (Mapping, list, tuple)):
                yield from _strings_of_paths(item, depth + 1)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _strings_of_paths(item, depth + 1)


def path_arguments(arguments: Mapping[str, object]) -> list[str]:
    """The values of all path-like arguments (``path``, ``file``, ``target``, ``paths`` …), nested ones included."""
    return list(_strings_of_paths(arguments, 0))


def expand(path: str) -> str:
    """``path`` with a ``file:`` address and a leading ``~`` written out, as a tool might read them."""
    if path[:5].lower() == "file:":
        path = unquote(urlsplit(path).path)
    return os.path.expanduser(path) if path.startswith("~") else path


def resolve(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> Path:
    """The place that ``path``, relative to ``root``, leads to, through every symlink, dangling ones too.

    Raises :class:`UnusablePathError` for a path that cannot exist.
    """
    text = expand(os.fspath(path))
    if "\0" in text:
        raise UnusablePathError("The path contains a NUL character. Leave it out.")
    try:
        return Path(os.path.realpath(os.path.join(root, text)))
    except (OSError, ValueError) as error:
        raise UnusablePathError(f"The path {text!r} cannot be used: {error}.") from error


def is_inside(path: Path, root: Path) -> bool:
    """Whether ``path`` is ``root`` or below it; both already resolved."""
    return path == root or root in path.parents


def is_protected(path: Path, root: Path) -> bool:
    """Whether a resolved path inside ``root`` belongs to the agent's settings or to git's own files.

    Names are compared without case, since some file systems do.
    """
    parts = path.relative_to(root).parts if is_inside(path, root) else path.parts
    return any(part.casefold() in PROTECTED_NAMES for part in parts)
