"""Source code as a few kinds of token, for views that colour them with the theme's own variables."""

from __future__ import annotations

import html
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from zq_notebook.text.visible import make_visible

if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]

# Longer code is shown without colour: highlighting it would hold up the kernel for longer than anyone reads.
MAX_HIGHLIGHTED = 100_000

# Pygments token names (as ``str(token)`` without the leading "Token."), the longest matching prefix wins.
_CLASSES = {
    "Comment": "c",
    "Comment.Preproc": "m",
    "Keyword": "k",
    "Keyword.Constant": "k",
    "Operator": "o",
    "Operator.Word": "k",
    "Literal.String": "s",
    "Literal.Number": "n",
    "Literal.String.Interpol": "o",
    "Name.Builtin": "b",
    "Name.Function": "d",
    "Name.Class": "d",
    "Name.Decorator": "m",
    "Name.Tag": "k",
    "Name.Attribute": "d",
    "Generic.Inserted": "i",
    "Generic.Deleted": "x",
    "Generic.Subheading": "h",
    "Generic.Heading": "h",
}


@lru_cache(maxsize=512)
def _class_of(name: str) -> str:
    while name:
        if name in _CLASSES:
            return _CLASSES[name]
        name = name.rpartition(".")[0]
    return ""


@lru_cache(maxsize=32)
def _lexer(language: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    aliases = {"py": "python", "ipython": "ipython3", "sh": "bash", "shell": "bash", "": "text"}
    try:
        return get_lexer_by_name(aliases.get(language, language), stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def tokens(code: str, language: str) -> Iterator[tuple[str, str]]:
    """``(class, text)`` pairs whose texts add up to ``code``; class ``""`` is plain, equal neighbours are joined."""
    lexer = _lexer(language.strip().lower()) if len(code) <= MAX_HIGHLIGHTED else None
    if lexer is None or "\r" in code:  # Pygments drops carriage returns; the pieces must add up to the code
        yield "", code
        return
    kind, parts = "", list[str]()
    for token, text in lexer.get_tokens(code):
        this = _class_of(str(token)[len("Token.") :])
        if this != kind and not text.isspace():
            if parts:
                yield kind, "".join(parts)
            kind, parts = this, []
        parts.append(text)
    if parts:
        yield kind, "".join(parts)


def highlight(code: str, language: str, *, prose: bool = False) -> str:
    """``code`` as escaped HTML, its tokens in ``<span class="k">`` and the like; hidden characters are made visible.

    ``prose`` as for :func:`make_visible`.
    """
    pieces = []
    for kind, text in tokens(make_visible(code, prose=prose), language):
        escaped = html.escape(text, quote=False)
        pieces.append(f'<span class="{kind}">{escaped}</span>' if kind else escaped)
    return "".join(pieces)
