"""Which displays a tool card can hold, and pictures in a size that a model accepts."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Mapping
from html.parser import HTMLParser

from zq_notebook.text.truncate import clip_middle
from zq_notebook.toolio import ImageData

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_CARD_HTML = 200_000
MAX_IMAGE_BYTES = 3_000_000
MAX_IMAGE_SIDE = 2_048
_MAX_SVG_CHARS = 4_000
_READABLE = ("text/plain", "text/markdown", "text/latex", "text/html", "image/svg+xml")
_JUST_A_NAME = re.compile(r"<[\w.]+( object)?( at 0x[0-9a-f]+)?>")

_TAGS = frozenset(
    {"table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption", "colgroup", "col", "div", "span", "p", "br", "hr"}
    | {"b", "i", "em", "strong", "u", "s", "small", "sub", "sup", "pre", "code", "kbd", "ul", "ol", "li", "dl", "dt"}
    | {"dd", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "style"}
)
_ATTRIBUTES = frozenset(
    {"class", "style", "border", "id", "scope", "scoped", "colspan", "rowspan", "title", "align", "valign", "width"}
    | {"height", "type", "lang", "dir"}
)
# The style that pandas and polars put before a table; a card has its own. Any other style is part of the picture.
_TABLE_STYLE = re.compile(r"(\s*(\.dataframe\s*[^{}@]*,?\s*)+\{[^{}@\\]*\}\s*)*")
_PLAIN_STYLE = re.compile(r"\s*(text-align|border-width|white-space|font-size|display|overflow-x?)\s*:[\w\s.%-]+;?\s*")


class _PassiveCheck(HTMLParser):
    """Closed world: any element, attribute or style that a card would not keep makes the HTML active."""

    def __init__(self) -> None:
        super().__init__()
        self.passive = True
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        if tag not in _TAGS or not all(self._harmless(name, value or "") for name, value in attrs):
            self.passive = False

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False
        if tag not in _TAGS:
            self.passive = False

    def handle_data(self, data: str) -> None:
        if self._in_style and not _TABLE_STYLE.fullmatch(data):
            self.passive = False

    def handle_decl(self, decl: str) -> None:
        self.passive = False

    def handle_pi(self, data: str) -> None:
        self.passive = False

    def unknown_decl(self, data: str) -> None:
        self.passive = False

    @staticmethod
    def _harmless(name: str, value: str) -> bool:
        if name == "style":
            return _PLAIN_STYLE.fullmatch(value) is not None
        return name in _ATTRIBUTES


class _Words(HTMLParser):
    """The words of a piece of HTML, without scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._skipped = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skipped = tag if tag in ("script", "style") else ""

    def handle_endtag(self, tag: str) -> None:
        self._skipped = ""

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.pieces.append(data)


def is_passive_html(html: str) -> bool:
    """Whether ``html`` is small and loses nothing when a card reduces it to its structure: text and tables."""
    if len(html) > MAX_CARD_HTML or "<!--" in html:
        return False
    check = _PassiveCheck()
    check.feed(html)
    check.close()
    return check.passive


def fits_card(bundle: Mapping[str, object]) -> bool:
    """Whether a card can show the best form of this MIME bundle; if not, it belongs into the cell as it is."""
    kinds = [kind for kind in bundle if kind != "text/plain"]
    if not kinds:
        return True
    if any(kind in IMAGE_TYPES for kind in kinds):
        return all(kind in IMAGE_TYPES or kind in ("text/html", "image/svg+xml") for kind in kinds)
    html = bundle.get("text/html")
    return kinds == ["text/html"] and isinstance(html, str) and is_passive_html(html)


def label_of(bundle: Mapping[str, object]) -> str:
    """A few words for a display that is shown in the cell itself."""
    for kind in bundle:
        if "widget-view" in kind:
            return "a widget"
        if "plotly" in kind:
            return "a Plotly figure"
        if "vega" in kind:
            return "a Vega chart"
    kinds = [kind for kind in bundle if kind != "text/plain"]
    return f"a display of type {kinds[0]}" if kinds else "text"


def words_of(bundle: Mapping[str, object]) -> dict[str, object]:
    """The parts of a bundle that a model can read."""
    return {kind: value for kind in _READABLE if isinstance(value := bundle.get(kind), str) and len(value) <= 500_000}


def readable(bundle: Mapping[str, object]) -> str:
    """A bundle as text: its plain form, or, when that only names an object, what its markup says."""
    text = str(bundle.get("text/plain", ""))
    if not text or _JUST_A_NAME.fullmatch(text):
        for kind in ("text/markdown", "text/latex"):
            if kind in bundle:
                return str(bundle[kind])
        if "text/html" in bundle:
            words = _Words()
            words.feed(str(bundle["text/html"]))
            words.close()
            text = " ".join(" ".join(words.pieces).split()) or text
    svg = bundle.get("image/svg+xml")
    return f"{text}\n{clip_middle(svg, _MAX_SVG_CHARS)}".strip() if isinstance(svg, str) else text


def image_bytes(value: object) -> bytes | None:
    """The encoded picture in a bundle: bytes as formatters return them, or base64 as messages carry it."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=False)
        except (binascii.Error, ValueError):
            return None
    return None


def bounded_image(data: bytes, mime_type: str, alt: str) -> ImageData | None:
    """The picture, made smaller when it is more than a model accepts; ``None`` when that cannot be done."""
    if len(data) <= MAX_IMAGE_BYTES and _longest_side(data) <= MAX_IMAGE_SIDE:
        return ImageData(data=data, mime_type=mime_type, alt=alt)
    smaller = _downscaled(data)
    return None if smaller is None else ImageData(data=smaller[0], mime_type=smaller[1], alt=alt)


def _longest_side(data: bytes) -> int:
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return int(max(width, height))
    return 0  # the other formats are bounded by their bytes alone


def _downscaled(data: bytes) -> tuple[bytes, str] | None:
    import io

    try:
        from PIL import Image
    except ImportError:
        return None
    try:
        with Image.open(io.BytesIO(data)) as picture:
            picture.thumbnail((MAX_IMAGE_SIDE, MAX_IMAGE_SIDE))
            for kind, options in (("PNG", {"optimize": True}), ("JPEG", {"quality": 85})):
                out = io.BytesIO()
                (picture.convert("RGB") if kind == "JPEG" else picture).save(out, kind, **options)
                if out.tell() <= MAX_IMAGE_BYTES:
                    return out.getvalue(), f"image/{kind.lower()}"
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    return None
