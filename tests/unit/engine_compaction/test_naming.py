"""Naming a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.engine_compaction.helpers import engine_with, system, talk
from zq_notebook.engine.naming import NAME_CHARS, sanitize_session_name, suggest_session_name
from zq_notebook.errors import NetworkError
from zq_notebook.languages.catalog import get_prompts
from zq_notebook.providers.scripted import ScriptedProvider


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("Sales by region", "Sales by region"),
        ('"Sales by region."', "Sales by region"),
        ("\n\n**Title: Sales by region**\nSome more words", "Sales by region"),
        ("# Sales by region", "Sales by region"),
        ("`fix read_file bug`", "fix read_file bug"),
        ("「地区销售分析」。", "地区销售分析"),
        ("Analyse sales (2024)", "Analyse sales (2024)"),
        (".gitignore clean-up", ".gitignore clean-up"),
        ("C# parser errors", "C# parser errors"),
        ("a\u202eb\x07c", "ab c"),
        ("", None),
        ('  ""  \n ** ', None),
    ],
)
def test_names_are_cleaned(answer: str, name: str | None) -> None:
    assert sanitize_session_name(answer) == name


def test_long_names_end_with_a_whole_word() -> None:
    name = sanitize_session_name("analyse " * 20)
    assert name is not None
    assert len(name) <= NAME_CHARS
    assert name.endswith("analyse")
    assert sanitize_session_name("x" * 200) == "x" * NAME_CHARS


@given(st.text())
def test_no_answer_gives_a_name_that_breaks_a_line_or_is_too_long(text: str) -> None:
    name = sanitize_session_name(text)
    if name is not None:
        assert 0 < len(name) <= NAME_CHARS
        assert len(name.splitlines()) == 1
        assert name == name.strip()
        assert "`" not in name


async def test_the_name_comes_from_what_was_said_first(tmp_path: Path) -> None:
    provider = ScriptedProvider(chat_replies=["Two questions"])
    prompt = get_prompts("ja").session.naming
    engine = engine_with(provider, tmp_path, messages=[system(), *talk(2)], lang="ja")
    assert await suggest_session_name(engine) == "Two questions"
    asked = provider.chat_requests[0].messages
    assert [m["role"] for m in asked] == ["system", "user"]
    assert asked[0]["content"] == prompt
    assert asked[1]["content"].startswith("question 0")
    assert len(engine.messages) == 5


async def test_a_prompt_of_ones_own_wins_over_the_one_of_the_language(tmp_path: Path) -> None:
    provider = ScriptedProvider(chat_replies=["Two questions"])
    await suggest_session_name(
        engine_with(provider, tmp_path, messages=talk(1), lang="ja", gen_session_name_prompt="Name it.")
    )
    assert provider.chat_requests[0].messages[0]["content"] == "Name it."


async def test_without_an_answer_there_is_no_name_and_no_error(tmp_path: Path) -> None:
    class Broken(ScriptedProvider):
        async def chat(self, *args: Any, **kwargs: Any) -> str | None:
            raise NetworkError("lost")

    for provider in (Broken(), ScriptedProvider()):
        assert await suggest_session_name(engine_with(provider, tmp_path, messages=talk(1))) is None
    silent = ScriptedProvider(chat_replies=["unasked"])
    assert await suggest_session_name(engine_with(silent, tmp_path)) is None
    assert silent.chat_requests == []
