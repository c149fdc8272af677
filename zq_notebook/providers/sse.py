"""Server-sent events, from bytes as they come off the network to the text of each ``data:`` field.

This is the hot path of every streamed reply: one call per network read, however many events it brought.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from zq_notebook.errors import StreamError
from zq_notebook.providers.masking import mask_secrets
from zq_notebook.text.unicode import well_formed

T = TypeVar("T")


class SseParser:
    """Cuts a stream of bytes into the payloads of its events, wherever the reads happen to end."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that ``data`` completes, in order."""
        if self._rest:
            data = self._rest + data
        held = b""
        if b"\r" in data:
            if data.endswith(b"\r"):  # half of a CRLF perhaps: the next read will tell
                data, held = data[:-1], b"\r"
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        blocks = data.split(b"\n\n")
        self._rest = blocks.pop() + held
        payloads: list[bytes] = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                payloads.append(block[6:])
            elif payload := _payload_of(block):
                payloads.append(payload)
        return payloads

    def finish(self) -> list[bytes]:
        """What is left when the stream ends: some servers leave out the last blank line."""
        rest, self._rest = self._rest, b""
        payload = _payload_of(rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
        return [payload] if payload else []


def _payload_of(block: bytes) -> bytes:
    """The ``data:`` lines of one event; those of an ``event: error`` are wrapped so that they read as an error."""
    data: list[bytes] = []
    is_error = False
    for line in block.split(b"\n"):
        if line.startswith(b"data:"):
            data.append(line[6:] if line.startswith(b"data: ") else line[5:])
        elif line.startswith(b"event:"):
            is_error = line[6:].strip() == b"error"
    payload = b"\n".join(data).strip()
    return b'{"type":"error","error":' + payload + b"}" if is_error and payload else payload


def decode_event(decoder: msgspec.json.Decoder[T], payload: bytes) -> T:
    """One payload as its struct; raises StreamError when it is not what the API describes."""
    try:
        return decoder.decode(payload)
    except msgspec.ValidationError as error:
        raise _malformed(payload, str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_leniently(decoder, payload)


def _decode_leniently(decoder: msgspec.json.Decoder[T], payload: bytes) -> T:
    """For servers that cut a character outside the BMP in two: ``json`` accepts the halves, msgspec does not."""
    try:
        event: T = msgspec.convert(json.loads(payload), type=decoder.type)
    except (ValueError, RecursionError) as error:
        raise _malformed(payload, str(error)) from error
    return event


def _malformed(payload: bytes, why: str) -> StreamError:
    shown = mask_secrets(payload.decode("utf-8", "replace"))[:120]
    return StreamError(
        f"The model's stream carried something unreadable ({why}): {shown!r}. Send the request again; when it keeps "
        "happening, the server or a proxy before it does not speak this API."
    )


class HalfCharacters:
    """Puts characters together again that a server cut into two surrogate halves over two deltas."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def join(self, text: str) -> str:
        """``text`` with the half from before, and without the half at its end."""
        if not self._half and text.isascii():
            return text
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._half, text = text[-1], text[:-1]
        return well_formed(text)


def number(value: Any) -> int:
    """A token count as an integer, 0 when the server sent none."""
    return int(value) if isinstance(value, (int, float)) else 0
