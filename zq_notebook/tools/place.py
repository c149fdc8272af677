"""Where a tool's path argument leads, and writing there without being led elsewhere (design.md §7, §8)."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from zq_notebook.errors import ToolError
from zq_notebook.permissions.paths import UnusablePathError, is_inside, resolve

_HAS_DIR_FD = os.open in os.supports_dir_fd and os.mkdir in os.supports_dir_fd and os.rename in os.supports_dir_fd
_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)


class Workspace:
    """The directory that tools work in. Relative paths start here; writing is possible only below it."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(os.path.realpath(root))

    def find(self, path: str) -> Path:
        """The place that ``path`` leads to, inside the workspace or not. Raises :class:`ToolError`."""
        try:
            return resolve(path, self.root)
        except UnusablePathError as error:
            raise ToolError(str(error)) from None

    def find_inside(self, path: str) -> Path:
        """The same for a path that must be inside the workspace. Raises :class:`ToolError`."""
        place = self.find(path)
        if not is_inside(place, self.root):
            raise ToolError(
                f"{path} leads to {place}, outside the workspace {self.root}. Use a path inside the workspace."
            )
        return place

    def show(self, place: Path) -> str:
        """``place`` as the model should name it: relative to the workspace where that is possible."""
        if is_inside(place, self.root):
            return place.relative_to(self.root).as_posix()
        return str(place)


def explain(error: OSError, shown: str) -> ToolError:
    """An ``OSError`` on a path in words that say what to do next."""
    match error.errno:
        case errno.ENOENT:
            return ToolError(f"There is no {shown}. Check the name with list_files.")
        case errno.EACCES | errno.EPERM:
            return ToolError(f"{shown} cannot be opened: permission denied.")
        case errno.ELOOP:
            return ToolError(f"{shown} is a symbolic link that leads in a circle, or one that has just appeared.")
        case errno.ENOTDIR:
            return ToolError(f"A part of {shown} is a file, not a directory.")
        case errno.ENAMETOOLONG:
            return ToolError(f"The name {shown[:80]}… is too long for this file system.")
        case errno.ENOSPC:
            return ToolError(f"{shown} was not written: no space is left on the device.")
    return ToolError(f"{shown} cannot be used: {error.strerror or error}.")


def open_regular(place: Path, shown: str) -> int:
    """A descriptor for reading a regular file.

    A pipe or device is refused without waiting for it or reading from it. Raises :class:`ToolError`.
    """
    flags = os.O_RDONLY | _CLOEXEC | _BINARY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    try:
        # Opening some devices has effects, so that their kind is looked at first, and again after opening.
        require_regular(os.stat(place).st_mode, shown)
        descriptor = os.open(place, flags)
    except OSError as error:
        raise explain(error, shown) from None
    try:
        require_regular(os.fstat(descriptor).st_mode, shown)
    except ToolError:
        os.close(descriptor)
        raise
    return descriptor


def require_regular(mode: int, shown: str) -> None:
    """Raise :class:`ToolError` unless ``mode`` is that of a regular file."""
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise ToolError(f"{shown} is a directory. Use list_files to see what is in it.")
    kinds = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    kind = next((name for test, name in kinds if test(mode)), "a device")
    raise ToolError(f"{shown} is {kind}, not a file, and is neither read nor written.")


@contextlib.contextmanager
def _parent(root: Path, place: Path) -> Iterator[int]:
    """A descriptor of the directory of ``place``, made if need be, reached from ``root`` without following a link.

    ``place`` was resolved before; a link met now was put there since, and opening fails.
    """
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | _CLOEXEC)
    try:
        for part in place.relative_to(root).parts[:-1]:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=descriptor)
            deeper = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _NOFOLLOW | _CLOEXEC, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _keep_attributes(descriptor: int, existing: os.stat_result) -> None:
    """Mode and owner of the file that is replaced."""
    if hasattr(os, "fchown") and (existing.st_uid, existing.st_gid) != (os.geteuid(), os.getegid()):
        # Only root may give files away; without that the new owner is whoever runs this.
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, existing.st_uid, existing.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(existing.st_mode))


def write_atomically(workspace: Workspace, place: Path, data: bytes, shown: str) -> None:
    """Put ``data`` at ``place`` inside the workspace: all of it or nothing, mode and owner kept, parents made.

    ``place`` must have come from :meth:`Workspace.find_inside`. Raises :class:`ToolError`, also when a part of the path
    has become a link meanwhile.
    """
    if place == workspace.root:
        raise ToolError(f"{shown} is the workspace itself. Name a file.")
    if not is_inside(place, workspace.root):
        raise ToolError(f"{shown} is outside the workspace.")
    try:
        if _HAS_DIR_FD:
            _write_below(workspace.root, place, data, shown)
        else:
            _write_by_name(workspace.root, place, data, shown)
    except OSError as error:
        raise explain(error, shown) from None


def _write_below(root: Path, place: Path, data: bytes, shown: str) -> None:
    temporary = f".{place.name[:100]}.{secrets.token_hex(6)}.tmp"
    with _parent(root, place) as parent:
        existing = _existing(place.name, parent, shown)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | _CLOEXEC
        # A new file follows the umask, which the system applies; one that replaces another is private until complete.
        descriptor = os.open(temporary, flags, 0o666 if existing is None else 0o600, dir_fd=parent)
        try:
            try:
                _write_all(descriptor, data)
                if existing is not None:
                    _keep_attributes(descriptor, existing)
            finally:
                os.close(descriptor)
            os.rename(temporary, place.name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise


def _existing(name: str, parent: int, shown: str) -> os.stat_result | None:
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        raise ToolError(f"{shown} has just become a symbolic link. Nothing was written; look again before you do.")
    require_regular(status.st_mode, shown)
    if not os.access(name, os.W_OK, dir_fd=parent):
        raise ToolError(f"{shown} is read-only. Nothing was written.")
    return status


def _write_by_name(root: Path, place: Path, data: bytes, shown: str) -> None:
    """Without ``dir_fd`` (Windows): the path is resolved once more right before the file is put in place."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        require_regular(place.stat().st_mode, shown)
    temporary = place.with_name(f".{place.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        if Path(os.path.realpath(place)) != place or not is_inside(place, root):
            raise ToolError(f"{shown} has just become a link. Nothing was written; look again before you do.")
        os.replace(temporary, place)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
