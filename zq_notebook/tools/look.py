"""What a file that is not text is: a picture to show, or a few facts about its bytes."""

from __future__ import annotations

import struct

IMAGE_TYPES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
MAX_IMAGE_BYTES = 5 * 1024 * 1024
_KINDS = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or an Office document, a wheel, an .npz)"),
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"BZh", "bzip2-compressed data"),
    (b"\xfd7zXZ", "xz-compressed data"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (b"\x7fELF", "an ELF program or library"),
    (b"MZ", "a Windows program or library"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"OggS", "Ogg media"),
    (b"ID3", "an MP3 file"),
    (b"RIFF", "RIFF media"),
)


def image_type(head: bytes) -> str | None:
    """The MIME type of a picture that models can be shown, or ``None``."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in IMAGE_TYPES if head.startswith(magic)), None)


def image_size(head: bytes) -> str:
    """Width and height where the header says so plainly, as ``" 640×480"``."""
    if head.startswith(IMAGE_TYPES[0][0]) and len(head) >= 24:
        width, height = struct.unpack(">II", head[16:24])
        return f" {width}×{height}"
    if head.startswith(b"GIF8") and len(head) >= 10:
        width, height = struct.unpack("<HH", head[6:10])
        return f" {width}×{height}"
    return ""


def describe_binary(head: bytes, size: int, shown: str) -> str:
    """One paragraph about a file that is not text."""
    kind = next((text for magic, text in _KINDS if head.startswith(magic)), "binary data")
    if not head.strip(b"\0"):
        kind = "binary data that begins with nothing but zeros"
    return (
        f"{shown} is not a text file: {kind}, {size:,} bytes. It begins with {head[:32].hex(' ')}. "
        "Use code or a program that knows the format to look inside."
    )
