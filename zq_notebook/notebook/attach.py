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
        path = (folder / Path(name).expanduser()).resolve()
        data = _read(name, path)
        total += len(data)
        if total > MAX_ATTACHMENT_BYTES:
            raise AttachmentError(f"{name} makes the attachments larger than {_mib(MAX_ATTACHMENT_BYTES)} together.")
        _add(attached, name, path, data)
    return attached


def _read(name: str, path: Path) -> bytes:
    if not path.exists():
        raise AttachmentError(f"The attachment {name} does not exist (looked for {path}). Check the name and folder.")
    if not path.is_file():
        raise AttachmentError(f"The attachment {name} is not a regular file. Attach single files.")
    size = path.stat().st_size
    if size > MAX_ATTACHMENT_BYTES:
        raise AttachmentError(
            f"The attachment {name} has {_mib(size)}, and {_mib(MAX_ATTACHMENT_BYTES)} is the limit. Name it in the "
            "prompt instead: the agent can read parts of a file."
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise AttachmentError(f"The attachment {name} cannot be read: {error.strerror}.") from None


def _add(attached: Attached, name: str, path: Path, data: bytes) -> None:
    mime_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if mime_type in IMAGE_TYPES:
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
