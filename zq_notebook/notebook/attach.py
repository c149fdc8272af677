"""Files given with ``%%agent -a FILE``: pictures go along as pictures, text as quoted text (Manual §13)."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from zq_notebook.errors import AttachmentError

MAX_ATTACHMENTS = 4
MAX_ATTACHMENT_BYTES = 10 * 1024 * 1024
MAX_TEXT_CHARS = 200_000

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")

# How they begin; that says more than a file's name.
_PICTURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class Attached(msgspec.Struct, kw_only=True):
    """What goes to the engine: pictures, their references for events, and text to put behind the prompt."""

    attachments: list[dict[str, Any]] = msgspec.field(default_factory=list)
    refs: list[dict[str, Any]] = msgspec.field(default_factory=list)
    text: str = ""


def read_attachments(names: Sequence[str], folder: Path) -> Attached:
    """Read the files named on the ``%%agent`` line; relative names start at ``folder``.

    Raises:
        AttachmentError: a file is missing, no regular file, too big, neither picture nor text, or there are too many.
    """
    if len(names) > MAX_ATTACHMENTS:
        raise AttachmentError(
            f"{len(names)} files are attached, and {MAX_ATTACHMENTS} is the limit. Attach fewer, or name the files in "
            "the prompt: the agent can read them by itself."
        )
    attached = Attached()
    total = 0
    for name in names:
        path, data = _read(name, folder)
        total += len(data)
        if total > MAX_ATTACHMENT_BYTES:
            raise AttachmentError(f"{name} makes the attachments larger than {_mib(MAX_ATTACHMENT_BYTES)} together.")
        _add(attached, name, path, data)
    return attached


def _read(name: str, folder: Path) -> tuple[Path, bytes]:
    try:
        path = (folder / Path(name).expanduser()).resolve()
        if not path.exists():
            raise AttachmentError(
                f"The attachment {name} does not exist (looked for {path}). Check the name and folder."
            )
        if not path.is_file():
            raise AttachmentError(f"The attachment {name} is not a regular file. Attach single files.")
        with path.open("rb") as file:
            # What it says about its size need not be true, and may change.
            data = file.read(MAX_ATTACHMENT_BYTES + 1)
        size = max(path.stat().st_size, len(data))
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AttachmentError(f"The attachment {name[:200]} cannot be read: {reason}. Check the name.") from None
    if size > MAX_ATTACHMENT_BYTES:
        raise AttachmentError(
            f"The attachment {name} has {_mib(size)}, and {_mib(MAX_ATTACHMENT_BYTES)} is the limit. Name it in the "
            "prompt instead: the agent can read parts of a file."
        )
    if not data:
        raise AttachmentError(f"The attachment {name} is empty. Check that it is the right file, or leave it out.")
    return path, data


def _picture_type(path: Path, data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    named = mimetypes.guess_type(path.name)[0]
    return next((mime_type for start, mime_type in _PICTURES if data.startswith(start)), None) or (
        named if named in IMAGE_TYPES else None
    )


def _add(attached: Attached, name: str, path: Path, data: bytes) -> None:
    mime_type = _picture_type(path, data)
    if mime_type is not None:
        url = f"data:{mime_type};base64,{base64.b64encode(data).decode()}"
        attached.attachments.append({"name": path.name, "mimeType": mime_type, "dataUrl": url})
        attached.refs.append({"name": path.name, "mimeType": mime_type, "size": len(data), "path": str(path)})
        return
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise AttachmentError(
            f"The attachment {name} is neither a picture (PNG, JPEG, GIF, WebP) nor UTF-8 text. Convert it, or name it "
            "in the prompt and let the agent look at it with its tools."
        )
    if len(text) > MAX_TEXT_CHARS:
        raise AttachmentError(
            f"The attachment {name} has {len(text):,} characters, and {MAX_TEXT_CHARS:,} is the limit for text. "
            "Name it in the prompt instead: the agent can read parts of a file."
        )
    attached.text += f"\n\nAttached file {path.name}:\n{_fenced(text)}"


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


def _mib(size: int) -> str:
    return f"{size / 1024 / 1024:.1f} MiB"
