"""A file that changed since the agent read it is not overwritten."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import msgspec

from zq_notebook.errors import ToolError

MAX_HASHED = 16 * 1024 * 1024  # bytes; of larger files only size and time are compared


class _Seen(msgspec.Struct, frozen=True):
    size: int
    mtime_ns: int
    inode: int
    digest: bytes | None


class ConflictGuard:
    """Remembers each file as the agent last saw it, by reading or by writing it.

    A file that was never read may be written: the agent creates files, and a script that runs twice writes its report
    twice. What is guarded is the user's change *after* the agent looked.
    """

    def __init__(self) -> None:
        self._seen: dict[Path, _Seen] = {}
        self._lock = threading.Lock()

    def saw(self, place: Path, status: os.stat_result, content: bytes | None) -> None:
        """The agent knows ``place`` as it is now; ``content`` is all of it, or ``None`` when it was too large."""
        digest = None if content is None else hashlib.blake2b(content).digest()
        with self._lock:
            self._seen[place] = _Seen(status.st_size, status.st_mtime_ns, status.st_ino, digest)

    def knows(self, place: Path) -> bool:
        """Whether the agent has read or written ``place``."""
        return place in self._seen

    def check(self, place: Path, status: os.stat_result, content: bytes | None, shown: str) -> None:
        """Raise :class:`ToolError` when ``place`` is no longer what the agent saw."""
        seen = self._seen.get(place)
        if seen is None:
            return
        if seen.digest is not None and content is not None:
            unchanged = seen.digest == hashlib.blake2b(content).digest()
        else:
            now = (status.st_size, status.st_mtime_ns, status.st_ino)
            unchanged = now == (seen.size, seen.mtime_ns, seen.inode)
        if not unchanged:
            raise ToolError(
                f"{shown} was changed by someone else since you last read it. Nothing was written. Read it again with "
                "read_file, then make your change to what is there now."
            )
