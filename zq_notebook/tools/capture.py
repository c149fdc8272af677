"""The output of a process, however much it is: its beginning and end in memory, all of it in a file when it is long."""

from __future__ import annotations

import codecs
import os
import re
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

MAX_FILE_BYTES = 2 * 1024**3
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
NewFile = Callable[[], tuple[int, Path]]


def readable(data: bytes) -> str:
    """Output as text: UTF-8 with replacements, no terminal escapes, and of a redrawn line only its last state."""
    text = _ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return text.replace("\0", "\ufffd")


def whole_characters(data: bytes) -> bytes:
    """``data`` without the beginning of a UTF-8 character at its end, unless that is all there is."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    pending = len(decoder.getstate()[0])
    return data[:-pending] if 0 < pending < len(data) else data


class Capture:
    """Collects bytes from one thread while others look. ``keep`` is how many bytes stay in memory at either end."""

    def __init__(self, keep: int, new_file: NewFile | None) -> None:
        self._keep = keep
        self._new_file = new_file
        self._lock = threading.Lock()
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._file: int | None = None
        self._file_size = 0
        self._closed = False
        self.total = 0
        self.path: Path | None = None
        self.file_error: str | None = None

    def write(self, data: bytes) -> None:
        """Take in ``data``; after :meth:`close` it is dropped."""
        with self._lock:
            if self._closed:
                return
            room = max(self._keep - len(self._head), 0)
            self._head += data[:room]
            if rest := data[room:]:
                self._spill(rest)
                self._keep_end(rest)
            # Last: who sees the new total finds the data in the file.
            self.total += len(data)

    def _keep_end(self, rest: bytes) -> None:
        self._tail.append(rest)
        self._tail_size += len(rest)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._keep:
            self._tail_size -= len(self._tail.popleft())

    def _spill(self, rest: bytes) -> None:
        """Write to the file what does not stay in memory. Losing it is said, and does not end the command."""
        if self._new_file is None or self.file_error is not None:
            return
        try:
            if self._file is None:
                self._file, self.path = self._new_file()
                self._put(bytes(self._head))
            self._put(rest)
        except OSError as error:
            self.file_error = error.strerror or str(error)

    def _put(self, data: bytes) -> None:
        if self._file is None:
            return
        view = memoryview(data)[: max(MAX_FILE_BYTES - self._file_size, 0)]
        while view:
            written = os.write(self._file, view)
            self._file_size += written
            view = view[written:]

    def ends(self) -> tuple[bytes, int, bytes]:
        """The beginning, how many bytes are left out, and the end."""
        with self._lock:
            tail = b"".join(self._tail)
            if self.total <= len(self._head) + len(tail):
                return bytes(self._head) + tail, 0, b""
            tail = tail[-self._keep :]
            return bytes(self._head), self.total - len(self._head) - len(tail), tail

    def close(self) -> None:
        """Take in nothing more."""
        with self._lock:
            self._closed = True
            if self._file is not None:
                os.close(self._file)
                self._file = None
