"""What nobody sees is shown, and what one sees stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zq_notebook.text.highlight import tokens
from zq_notebook.text.safe_html import sanitize_html
from zq_notebook.text.truncate import bytes_words, clip_middle, shorten
from zq_notebook.text.visible import make_visible


@pytest.mark.parametrize(
    "char",
    ["\u202e", "\u2066", "\u200b", "\ufeff", "\x1b", "\x00", "\r", "\u00ad", "\u3164", "\U000e0041", "\u2028", "\xa0"],
)
def test_a_hidden_character_is_shown_by_its_number(char: str) -> None:
    assert make_visible(f"rm{char} -rf") == f"rm⟨U+{ord(char):04X}⟩ -rf"


@pytest.mark.parametrize("text", ["a\n\tb", "größer 数据 مرحبا", "a\u3000b", "🎉"])
def test_ordinary_text_is_not_touched(text: str) -> None:
    assert make_visible(text) == text


def test_prose_keeps_thin_spaces_and_emoji_but_no_direction_changes() -> None:
    assert make_visible("48\u202f210 ❤\ufe0f 👩\u200d🔬", prose=True) == "48\u202f210 ❤\ufe0f 👩\u200d🔬"
    assert make_visible("a\u202eb", prose=True) == "a⟨U+202E⟩b"


@given(st.text(max_size=80), st.sampled_from(["python", "bash", "diff", "json", "nosuchlanguage", ""]))
def test_the_tokens_of_code_add_up_to_the_code(code: str, language: str) -> None:
    assert "".join(text for _, text in tokens(code, language)) == code


@pytest.mark.parametrize(
    ("source", "kept"),
    [
        ("<b onclick='x()'>1</b>", "<b>1</b>"),
        ("<script>x</script>2", "2"),
        ("<style>b{}</style><table border=1><tr><td colspan='2'>3", '<table><tr><td colspan="2">3</td></tr></table>'),
        ("<img src=x onerror=y>4", "4"),
        ("<a href='javascript:x'>5</a>", "5"),
        ("<svg><b>x</b></svg>6", "6"),
        ("1 &lt; 2 <", "1 &lt; 2 &lt;"),
        ("</div></p>7", "7"),
    ],
)
def test_a_table_of_html_keeps_its_structure_and_nothing_else(source: str, kept: str) -> None:
    assert sanitize_html(source) == kept


@given(st.text(alphabet="<>/ab\"'= scriptyle-!&;", max_size=60))
def test_sanitised_html_is_balanced_and_has_no_handlers(source: str) -> None:
    clean = sanitize_html(source)
    assert sanitize_html(clean) == clean


def test_shortening_says_that_something_is_missing() -> None:
    assert shorten("one\ntwo", 20) == "one…"
    assert shorten("a  b", 20) == "a b"
    assert shorten("x" * 30, 10) == "x" * 9 + "…"
    clipped = clip_middle("line\n" * 1000, 300)
    assert len(clipped) < 360
    assert "characters left out" in clipped
    assert (bytes_words(812), bytes_words(48_200), bytes_words(3_100_000)) == ("812 bytes", "48 kB", "3.1 MB")
