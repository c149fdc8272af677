"""A model's markdown as safe HTML, and as a list of its blocks.

Raw HTML is off, links lead only to http, https and mailto, and a picture is never loaded from elsewhere: a model that
has read something hostile could otherwise send data out in a picture's address.
"""

from __future__ import annotations

import html
import re
from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from zq_notebook.text.highlight import highlight
from zq_notebook.text.unicode import well_formed

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from markdown_it.utils import OptionsDict

_ALLOWED_LINK = re.compile(r"(?:https?://|mailto:|#)", re.IGNORECASE)


class Block(msgspec.Struct, frozen=True):
    """One top-level block, ``text[start:end]``. A ``fence`` also has a language, its code and whether it was closed."""

    start: int
    end: int
    kind: str
    language: str = ""
    code_start: int = 0
    code_end: int = 0
    closed: bool = False


def render_markdown(text: str) -> str:
    """``text`` as HTML that may go into any page: nothing in it runs, loads or leaves the page by itself."""
    rendered: str = _renderer().render(well_formed(text))
    return rendered if "<pre" in rendered else rendered.replace(">\n<", "><")


def top_level_blocks(text: str) -> list[Block]:
    """The top-level blocks of ``text`` in order; text between them (blank lines, link definitions) belongs to none."""
    offsets = [0]
    for line in re.finditer(r"\n", text):
        offsets.append(line.end())
    offsets.append(len(text))
    blocks = []
    for token in block_tokens(text):
        if token.level == 0 and token.nesting != -1 and token.map:
            first, after = token.map
            start, end = offsets[first], offsets[min(after, len(offsets) - 1)]
            if token.type == "fence":
                code = offsets[min(first + 1, len(offsets) - 1)]
                closed = fence_is_closed(token.markup, text[code:end])
                code_end = offsets[after - 1] if closed else end
                words = token.info.split()
                blocks.append(Block(start, end, "fence", words[0] if words else "", code, code_end, closed))
            else:
                blocks.append(Block(start, end, "other"))
    return blocks


def fence_is_closed(markup: str, after_opening: str) -> bool:
    """Whether what follows a fence's opening line ends with a line that closes it; ``markup`` is the opening run."""
    last = after_opening.rstrip("\n").rpartition("\n")[2].strip()
    return last.startswith(markup) and not last.strip(markup[0])


def block_tokens(text: str) -> Sequence[Token]:
    """The block structure of ``text`` as markdown-it tokens, without parsing what is inside paragraphs."""
    return _block_parser().parse(text)


@lru_cache(maxsize=1)
def _block_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@lru_cache(maxsize=1)
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("escape", "math", _math_rule)
    # Every address is accepted while parsing; the render rules below leave out those that are not allowed.
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    for name, rule in (
        ("fence", _fence),
        ("code_block", _code_block),
        ("image", _image),
        ("link_open", _link_open),
        ("math", _math),
        ("text", _text),
        ("table_open", _table_open),
        ("table_close", _table_close),
    ):
        parser.add_render_rule(name, rule)
    return parser


_Env = MutableMapping[str, Any]


def _fence(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: _Env) -> str:
    words = tokens[index].info.split()
    return code_block(tokens[index].content, words[0] if words else "")


def _code_block(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: _Env) -> str:
    return code_block(tokens[index].content, "")


def code_block(code: str, language: str) -> str:
    """A highlighted ``<pre>``; ``code`` may be anything."""
    return f'<pre class="zq-code"><code>{highlight(code.rstrip(chr(10)), language)}</code></pre>\n'


def _image(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: _Env) -> str:
    token = tokens[index]
    label = self.renderInlineAsText(token.children or [], options, env) or "picture"
    return _anchor(str(token.attrGet("src") or "")) + html.escape(label, quote=False) + "</a>"


def _link_open(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: _Env) -> str:
    return _anchor(str(tokens[index].attrGet("href") or ""))


def _anchor(url: str) -> str:
    if not _ALLOWED_LINK.match(url):
        return "<a>"
    return f'<a href="{html.escape(url)}" target="_blank" rel="noopener noreferrer">'


def _table_open(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: _Env) -> str:
    return '<div class="zq-wide"><table>\n'


def _table_close(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: _Env) -> str:
    return "</table></div>\n"


def _text(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: _Env) -> str:
    # A lone "$" in an element of its own: notebook front ends typeset what stands between two dollar signs of one text
    # node, and would turn "from $5 to $6" into a formula.
    return html.escape(tokens[index].content, quote=False).replace("$", "<span>$</span>")


def _math(self: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: _Env) -> str:
    token = tokens[index]
    opening, closing = ("\\[", "\\]") if token.markup == "$$" else ("\\(", "\\)")
    return f'<span class="zq-math">{opening}{html.escape(token.content, quote=False)}{closing}</span>'


_MATH = re.compile(
    r"\$\$(?P<display>[^$]+?)\$\$|\$(?=[^\s$])(?P<inline>[^$\n]*?[^\s$\\])\$(?!\d)"
    r"|\\\((?P<round>.+?)\\\)|\\\[(?P<square>.+?)\\\]",
    re.DOTALL,
)


def _math_rule(state: StateInline, silent: bool) -> bool:
    """Formulas as pandoc reads them: ``$x$`` touches its dollar signs inside and no digit follows it."""
    if state.src[state.pos] not in "$\\":
        return False
    match = _MATH.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        token = state.push("math", "math", 0)
        token.content = next(group for group in match.groups() if group is not None)
        token.markup = "$$" if match["display"] is not None or match["square"] is not None else "$"
    state.pos = match.end()
    return True
