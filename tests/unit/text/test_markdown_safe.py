"""A model's markdown for programs that render raw HTML: judged by a parser that does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from zq_notebook.text.markdown_safe import safe_markdown

PARSER = MarkdownIt("commonmark", {"html": True}).enable("table")
PARSER.validateLink = lambda url: True  # type: ignore[method-assign]


def all_tokens(text: str) -> list[Token]:
    tokens = list[Token]()
    for token in PARSER.parse(text):
        tokens += [token, *(token.children or [])]
    return tokens


def assert_harmless(text: str) -> None:
    for token in all_tokens(safe_markdown(text)):
        assert token.type not in {"image", "html_block"}, token
        assert token.type != "html_inline" or token.content in {"<code>", "</code>"}, token
        href = str(token.attrGet("href") or "").lower() if token.type == "link_open" else ""
        assert not href.startswith(("javascript:", "data:", "vbscript:", "file:")), token


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "a <b onclick=1>c</b>",
    "`<img src=x>`",
    "# a ` b\n<img src=x onerror=1> ` c",
    "| ` | <img src=x> ` |\n|-|-|\n| ` | <img src=x> ` |",
    "\\\\`a` <img src=x> `b`",
    "\\`a` <img src=x> `b`",
    "[a](b`c) <img src=x> `",
    "![a](https://attacker.example/?q=1)",
    "![a][r]\n\n[r]: https://attacker.example",
    "`![a](https://attacker.example)`",
    "[a](javascript:alert(1))",
    "[a](\njavascript:alert(1))",
    "# a ` b\r<img src=x> ` c",
    "[a]\n\n[a]: javascript:alert(1)",
    "<!-- x -->",
    "<?php x ?>",
    "<javascript:alert(1)>",
    "- x\n\n      <img src=x>",
    "> `a\n> <img src=x>`",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_stays_text(text: str) -> None:
    assert_harmless(text)


@given(st.text(alphabet="<>[]()!`~*_\\\"'=:/ \n\r\t|-#ajimgx", max_size=50))
def test_no_text_brings_a_tag_or_a_picture(text: str) -> None:
    assert_harmless(text)


def test_ordinary_markdown_is_not_touched() -> None:
    text = "**a** < b, `x < y`, [link](https://example.org)\n\n```html\n<b>kept</b>\n```"
    assert safe_markdown(text) == text


def test_inline_code_with_a_tag_still_reads_as_code() -> None:
    assert safe_markdown("use `<div>`") == "use <code>&#60;div&#62;</code>"


def test_an_open_fence_does_not_swallow_what_follows() -> None:
    assert safe_markdown("```py\nx = 1") + "\n\nnext" == "```py\nx = 1\n```\n\nnext"
