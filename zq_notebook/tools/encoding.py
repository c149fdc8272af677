"""How a text file is written: encoding, byte order mark, line endings. Found when reading, kept when writing."""

from __future__ import annotations

import codecs
import re

import msgspec

SNIFF_BYTES = 64 * 1024
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARED = re.compile(
    rb"coding[:=][ \t]*[\"']?([-\w.]+)|<\?xml[^>]{0,100}encoding=[\"']([-\w.]+)|<meta[^>]{0,100}charset=[\"']?([-\w.]+)"
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MAX_CONTROL_SHARE = 0.02


class TextStyle(msgspec.Struct, frozen=True):
    """Encoding (a Python codec without byte order mark), the mark's bytes, and the line ending of new text."""

    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"

    @property
    def note(self) -> str:
        """What the model should know about it; empty for ordinary UTF-8."""
        parts = []
        if self.encoding != "utf-8":
            parts.append(self.encoding)
        elif self.bom:
            parts.append("UTF-8 with byte order mark")
        if self.newline != "\n":
            parts.append("CRLF line endings" if self.newline == "\r\n" else "CR line endings")
        return ", ".join(parts)

    def encode(self, text: str) -> bytes:
        """``text`` as the file's bytes. Raises ``UnicodeEncodeError`` where the encoding has no such character."""
        return self.bom + text.encode(self.encoding)

    def decode(self, data: bytes) -> str:
        """The file's bytes as text. Raises ``UnicodeDecodeError``."""
        return data[len(self.bom) :].decode(self.encoding)


def _declared(head: bytes) -> str | None:
    """The encoding that the beginning of a file declares, if Python has it and it reads the beginning."""
    match = _DECLARED.search(head[:1024])
    if match is None:
        return None
    name = next(group for group in match.groups() if group).decode("ascii", "replace")
    try:
        codec = codecs.lookup(name)
        head.decode(codec.name, "strict")
    except (LookupError, UnicodeDecodeError, ValueError):
        return None
    return codec.name


def _is_utf8(head: bytes, *, complete: bool) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=complete)
    except UnicodeDecodeError:
        return False
    return True


def _newline(text: str) -> str:
    """The line ending that all of ``text`` uses, else the ordinary one."""
    crlf = text.count("\r\n")
    if crlf and crlf == text.count("\n"):
        return "\r\n"
    return "\r" if "\r" in text and "\n" not in text else "\n"


def sniff(head: bytes, *, complete: bool) -> TextStyle | None:
    """The style of a file that begins with ``head``, or ``None`` for one that is not text.

    ``complete`` says that ``head`` is the whole file.
    """
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            text = head[len(bom) :].decode(encoding, "replace")
            return TextStyle(encoding, bom, _newline(text))
    if b"\0" in head:
        return None
    encoding = "utf-8" if _is_utf8(head, complete=complete) else _declared(head) or "cp1252"
    if len(_CONTROL.findall(head)) > len(head) * _MAX_CONTROL_SHARE:
        return None
    if encoding == "cp1252":
        try:
            head.decode("cp1252")
        except UnicodeDecodeError:
            encoding = "latin-1"
    return TextStyle(encoding, b"", _newline(head.decode(encoding, "replace")))
