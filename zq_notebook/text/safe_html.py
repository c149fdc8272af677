"""HTML that a library made from the user's data (a table, a summary), reduced to what can only be looked at."""

from __future__ import annotations

import html
from html.parser import HTMLParser

# Names in a row are read more easily than forty of them in quotation marks.
_PHRASES = frozenset("abbr b br code del em i ins kbd q s samp small span strong sub sup tt u var".split())  # noqa: SIM905
_GROUPS = frozenset("dd details div dl dt h1 h2 h3 h4 h5 h6 hr li ol p pre summary ul".split())  # noqa: SIM905
_TABLES = frozenset({"caption", "col", "colgroup", "table", "tbody", "td", "tfoot", "th", "thead", "tr"})
_KEPT = _PHRASES | _GROUPS | _TABLES
_VOID = frozenset({"br", "col", "hr"})
_DROPPED_WITH_CONTENT = frozenset({"script", "style", "title", "template", "iframe", "object", "noscript", "svg"})
_KEPT_ATTRIBUTES = frozenset({"colspan", "rowspan", "scope", "align", "title", "dir", "lang"})


class _Sanitizer(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.open: list[str] = []
        self.skipping: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self.skipping or tag in _DROPPED_WITH_CONTENT:
            if tag in _DROPPED_WITH_CONTENT:
                self.skipping.append(tag)
            return
        if tag not in _KEPT:
            return
        kept = "".join(
            f' {name}="{html.escape(value or "")}"' for name, value in attrs if name in _KEPT_ATTRIBUTES and value
        )
        self.pieces.append(f"<{tag}{kept}>")
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _VOID:
            self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if self.skipping:
            if tag == self.skipping[-1]:
                self.skipping.pop()
            return
        if tag in self.open:
            while self.open:
                last = self.open.pop()
                self.pieces.append(f"</{last}>")
                if last == tag:
                    break

    def handle_data(self, data: str) -> None:
        if not self.skipping:
            self.pieces.append(html.escape(data, quote=False).replace("$", "<span>$</span>"))


def sanitize_html(source: str) -> str:
    """``source`` with a fixed list of structural elements and attributes: no script, style, link, picture or form."""
    parser = _Sanitizer()
    parser.feed(source)
    parser.close()
    while parser.open:
        parser.pieces.append(f"</{parser.open.pop()}>")
    return "".join(parser.pieces).strip()
