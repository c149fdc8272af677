"""What a terminal would leave on its screen, of text printed to it."""

from __future__ import annotations

import re
import threading
from collections import deque

from zq_notebook.text.truncate import group
from zq_notebook.text.unicode import well_formed

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-Z\\^-~]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MAX_LINE = 8_192


def plain(text: str) -> str:
    """``text`` without colours, cursor movements and other control characters, and with valid Unicode only."""
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return well_formed(_CONTROLS.sub("", text))


class BoundedText:
    """Collects printed text in bounded memory: its beginning and its end. Writable from any thread.

    ``head`` and ``tail`` are the characters kept at either end. A line that is overwritten (carriage return, as
    progress bars do it) counts only in its last form.
    """

    def __init__(self, head: int = 100_000, tail: int = 100_000) -> None:
        self._limits = head, tail
        self._lock = threading.RLock()
        self.clear()

    def clear(self) -> None:
        """Forget everything, as ``clear_output`` does."""
        with self._lock:
            self._head: list[str] = []
            self._tail: deque[str] = deque()
            self._head_size = self._tail_size = 0
            self._line = ""
            self.dropped = 0

    def write(self, text: str) -> None:
        """Add ``text``."""
        with self._lock:
            if "\r" in text or self._line.endswith("\r"):
                text = self._overwrite(text)
            end = text.rfind("\n") + 1
            if end:
                self._keep(self._line + text[:end])
                self._line = text[end:]
            else:
                self._line += text
            if len(self._line) > _MAX_LINE:
                self._keep(self._line)
                self._line = ""

    def value(self) -> str:
        """What is kept, with a note in the middle when something is missing."""
        with self._lock:
            head, tail = "".join(self._head), "".join(self._tail) + self._line.removesuffix("\r")
            note = f"\n… {group(self.dropped)} characters left out …\n" if self.dropped else ""
        return plain(head + note + tail)

    def _overwrite(self, text: str) -> str:
        """Resolve carriage returns; the unfinished line goes back into ``_line``, complete lines are returned."""
        lines = (self._line + text).replace("\r\n", "\n").split("\n")
        self._line = ""
        done = [_visible(line) for line in lines[:-1]]
        last = lines[-1]
        done.append(_visible(last) + "\r" if last.endswith("\r") else _visible(last))
        return "\n".join(done)

    def _keep(self, text: str) -> None:
        head, tail = self._limits
        room = head - self._head_size
        if room > 0:
            self._head.append(text[:room])
            self._head_size += len(self._head[-1])
            text = text[room:]
        if not text:
            return
        if len(text) > tail:
            self.dropped += len(text) - tail
            text = text[-tail:]
        self._tail.append(text)
        self._tail_size += len(text)
        while self._tail_size - len(self._tail[0]) >= tail:
            gone = self._tail.popleft()
            self._tail_size -= len(gone)
            self.dropped += len(gone)


def _visible(line: str) -> str:
    """The last thing written on a line that was overwritten."""
    if "\r" not in line:
        return line
    return next((part for part in reversed(line.split("\r")) if part), "")
