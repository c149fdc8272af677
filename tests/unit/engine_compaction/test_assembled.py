"""What create_default_engine gives to compaction."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.engine_compaction.helpers import contents, system, talk, turn
from zq_notebook.assembly import create_default_engine
from zq_notebook.errors import UsageError
from zq_notebook.languages.catalog import get_prompts
from zq_notebook.providers.scripted import ScriptedProvider


async def test_the_window_comes_from_the_price_table_and_the_words_from_the_language(tmp_path: Path) -> None:
    provider = ScriptedProvider(["ok"], chat_replies=["notes"])
    engine = create_default_engine(
        workspace=tmp_path, model="gpt-4", provider=provider, lang="es", messages=[system(), *talk(10, 4000)]
    )
    await turn(engine)
    assert engine.compaction_state.context_window == 8192
    assert contents(engine.messages)[1].startswith(get_prompts("es").compaction.summary_intro)


async def test_the_environment_sets_what_was_not_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_WINDOW", "50000")
    monkeypatch.setenv("COMPACTION_THRESHOLD_PCT", "0.5")
    provider = ScriptedProvider(["ok"])
    engine = create_default_engine(workspace=tmp_path, model="m", provider=provider, cap_tokens=20_000)
    await turn(engine)
    state = engine.compaction_state
    assert (state.context_window, state.threshold_tokens, state.soft_threshold_tokens) == (50_000, 20_000, 15_000)


def test_a_threshold_that_cannot_be_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACTION_CAP_TOKENS", "a lot")
    with pytest.raises(UsageError, match="COMPACTION_CAP_TOKENS"):
        create_default_engine(workspace=tmp_path, model="m", provider=ScriptedProvider())
