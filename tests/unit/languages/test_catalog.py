"""Which language is used, and when its file is read."""

from __future__ import annotations

import subprocess
import sys

import pytest

from zq_notebook.errors import UsageError
from zq_notebook.languages.catalog import PROMPT_LANGS, PROMPT_SETS, get_prompts, get_ui, resolve_lang


@pytest.fixture(autouse=True)
def no_language_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZQ_LANG", raising=False)


def test_the_option_wins_over_the_variable_and_the_variable_over_english(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_lang() == "en"
    monkeypatch.setenv("ZQ_LANG", "ja")
    assert resolve_lang() == resolve_lang("") == "ja"
    assert resolve_lang("es") == "es"
    assert get_ui().deny == "拒否"
    monkeypatch.setenv("ZQ_LANG", " ")
    assert resolve_lang() == "en"


@pytest.mark.parametrize("written", ["zh-TW", "zh-tw", "ZH_TW", " zh_tw "])
def test_case_and_underscore_do_not_matter(written: str) -> None:
    assert resolve_lang(written) == "zh-TW"


def test_an_unknown_language_is_refused_and_the_six_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"'tlh'.* lang .*zh, en, zh-TW, ja, ko, es"):
        resolve_lang("tlh")
    monkeypatch.setenv("ZQ_LANG", "../en")
    with pytest.raises(UsageError, match="ZQ_LANG"):
        get_prompts()


def test_prompt_sets_holds_the_six_languages_and_nothing_else() -> None:
    assert tuple(PROMPT_SETS) == PROMPT_LANGS
    assert len(PROMPT_SETS) == 6
    assert PROMPT_SETS["ko"] is get_prompts("ko")
    assert "fr" not in PROMPT_SETS


def test_importing_what_uses_the_languages_reads_no_language_file() -> None:
    script = (
        "import sys; from zq_notebook.agents import registry; from zq_notebook.engine import turn, naming; "
        "from zq_notebook.languages import catalog; "
        "print(catalog._load.cache_info().currsize, 'tomllib' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=30, text=True)
    assert run.stdout.strip() == "0 False"


def test_reading_a_language_for_the_first_time_costs_no_noticeable_time() -> None:
    script = (
        "import time; from zq_notebook.engine import turn; from zq_notebook.languages.catalog import get_prompts; "
        "start = time.process_time(); get_prompts('ja'); print(time.process_time() - start)"
    )
    command = [sys.executable, "-c", script]
    runs = [subprocess.run(command, capture_output=True, check=True, timeout=30, text=True) for _ in range(3)]
    # A busy machine can only add to it.
    assert min(float(run.stdout) for run in runs) < 0.020


@pytest.mark.parametrize("lang", PROMPT_LANGS)
def test_texts_for_the_model_can_be_filled(lang: str) -> None:
    texts = get_prompts(lang)
    assert "not on {prod}" in texts.results.denied_by_user_reason.format(reason="not on {prod}")
    assert texts.results.denied_by_permissions.format(reason="outside.").endswith("outside.")
    assert "out/{1}.txt" in texts.compaction.repeated_read.format(path="out/{1}.txt")
    assert "7" in texts.compaction.images_removed.format(count=7)
    assert "30" in texts.notices.finalize.format(limit=30)
