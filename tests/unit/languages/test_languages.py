"""Six languages with the same keys, the same placeholders and the same rules, each in its own words."""

from __future__ import annotations

import re
import string
import tomllib
from importlib import resources

import pytest

from zq_notebook.languages.catalog import PROMPT_LANGS, PROMPT_SETS

OTHERS = tuple(lang for lang in PROMPT_LANGS if lang != "en")
EAST_ASIAN = ("zh", "zh-TW", "ja", "ko")
FOLDER = resources.files("zq_notebook.languages")

# Words that stay as they are in every language; anything else in Latin letters is a text that was forgotten.
INTERNATIONAL = {"Jupyter", "Markdown", "shell", "await", "grep", "df2", "tmp", "allow", "error"}


def texts(lang: str) -> dict[str, str]:
    """Every text of a language by its dotted key."""

    def walk(node: object, path: str) -> dict[str, str]:
        if isinstance(node, str):
            return {path: node}
        assert isinstance(node, dict), f"{lang}: {path} is neither a text nor a table"
        found: dict[str, str] = {}
        for key, value in node.items():
            found |= walk(value, f"{path}.{key}" if path else key)
        return found

    return walk(tomllib.loads(FOLDER.joinpath(f"{lang}.toml").read_text(encoding="utf-8")), "")


def placeholders(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)


def tools_named(text: str) -> set[str]:
    return set(re.findall(r"(?<![A-Za-z0-9_])[a-z]+(?:_[a-z]+)+(?![A-Za-z0-9_])", re.sub(r"\{[^}]*\}", "", text)))


def outline(text: str) -> list[str]:
    """The headings, bullets and numbered points of a text, without their words."""
    return re.findall(r"^(?:## |- |\d\. )", text, flags=re.MULTILINE)


def only(text: str, pattern: str) -> str:
    return "".join(re.findall(pattern, text))


def test_there_is_one_file_for_each_language_and_no_other() -> None:
    assert {f.name for f in FOLDER.iterdir() if f.name.endswith(".toml")} == {f"{lang}.toml" for lang in PROMPT_LANGS}
    assert set(PROMPT_LANGS) == {"zh", "en", "zh-TW", "ja", "ko", "es"}


@pytest.mark.parametrize("lang", PROMPT_LANGS)
def test_a_language_loads_with_every_key_present(lang: str) -> None:
    assert set(PROMPT_SETS[lang].roles) == {"code", "cowork", "analyst"}


@pytest.mark.parametrize("lang", OTHERS)
def test_no_language_lacks_a_key_or_has_one_of_its_own(lang: str) -> None:
    assert texts(lang).keys() == texts("en").keys()


@pytest.mark.parametrize("lang", OTHERS)
def test_no_language_lacks_a_placeholder(lang: str) -> None:
    ours = {key: placeholders(text) for key, text in texts(lang).items()}
    assert ours == {key: placeholders(text) for key, text in texts("en").items()}


@pytest.mark.parametrize("lang", PROMPT_LANGS)
def test_no_text_is_empty_and_none_has_a_placeholder_without_a_name(lang: str) -> None:
    for key, text in texts(lang).items():
        assert text.strip(), key
        assert all(name.isidentifier() for name in placeholders(text)), key


@pytest.mark.parametrize("lang", OTHERS)
def test_no_language_drops_a_rule_or_a_heading(lang: str) -> None:
    ours = {key: outline(text) for key, text in texts(lang).items()}
    assert ours == {key: outline(text) for key, text in texts("en").items()}


@pytest.mark.parametrize("lang", OTHERS)
def test_every_language_names_the_same_tools(lang: str) -> None:
    ours = {key: tools_named(text) for key, text in texts(lang).items()}
    assert ours == {key: tools_named(text) for key, text in texts("en").items()}


@pytest.mark.parametrize("lang", EAST_ASIAN)
def test_no_english_is_left_over_in_an_east_asian_language(lang: str) -> None:
    for key, text in texts(lang).items():
        own = re.sub(r"\{[^}]*\}|`[^`]*`|\[[atcd]\]|[A-Za-z]*_[A-Za-z_]*(?:=\w+)?", " ", text)
        assert set(re.findall(r"[A-Za-z][A-Za-z0-9]*", own)) <= INTERNATIONAL, key


def test_no_english_is_left_over_in_spanish() -> None:
    english = texts("en")
    for key, text in texts("es").items():
        assert not re.search(r"(?i)\b(the|and|with|you|your|of|is|are|to|this|not)\b", text), key
        # A few single words are the same in both languages; a sentence never is.
        assert text != english[key] or len(text.split()) < 3, key


@pytest.mark.parametrize(("lang", "charset"), [("zh", "gb2312"), ("zh-TW", "big5"), ("ja", "shift_jis")])
def test_characters_are_those_of_the_script(lang: str, charset: str) -> None:
    for key, text in texts(lang).items():
        ideographs = only(text, r"[\u4e00-\u9fff]")
        assert ideographs.encode(charset, "ignore").decode(charset) == ideographs, key


def test_japanese_has_kana_and_korean_has_hangul_in_every_sentence() -> None:
    for key, text in texts("ja").items():
        assert "。" not in text or only(text, r"[\u3040-\u30ff]"), key
    for key, text in texts("ko").items():
        assert only(text, r"[\uac00-\ud7a3]"), key
        assert not only(text, r"[\u4e00-\u9fff\u3040-\u30ff]"), key


@pytest.mark.parametrize("lang", PROMPT_LANGS)
def test_our_own_words_are_calm(lang: str) -> None:
    for key, text in texts(lang).items():
        assert not re.search(r"[!！¡\U0001f000-\U0001faff\u2600-\u27bf]", text), key


@pytest.mark.parametrize("lang", PROMPT_LANGS)
def test_buttons_fit_on_a_card_400_pixels_wide(lang: str) -> None:
    ui = PROMPT_SETS[lang].ui
    for label in (ui.allow_once, ui.always_tool, ui.always_command, ui.deny, ui.stop, ui.send, ui.answer):
        assert len(label) <= 34


@pytest.mark.parametrize("lang", PROMPT_LANGS)
def test_every_state_an_event_carries_has_a_word(lang: str) -> None:
    ui = PROMPT_SETS[lang].ui
    assert ui.mode("plan") == ui.mode("discuss") == ui.mode_plan
    assert len({ui.mode(m) for m in ("interactive", "auto", "plan")}) == 3
    for status in ("running", "waiting", "ok", "error", "denied", "interrupted"):
        assert ui.status(status) != status or (lang, status) in {
            ("en", "running"),
            ("en", "denied"),
            ("en", "interrupted"),
        }
    for status in ("completed", "interrupted", "error", "max_iterations_exceeded"):
        assert ui.turn(status) == getattr(ui, f"turn_{status}")
    assert ui.mode("something-new") == "something-new"
