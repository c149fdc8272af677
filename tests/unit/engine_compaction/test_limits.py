"""Thresholds in tokens, and where the options come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.engine_compaction.helpers import engine_with
from zq_notebook.engine.limits import CompactionOptions, Limits
from zq_notebook.errors import UsageError
from zq_notebook.providers.scripted import ScriptedProvider


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Limits(window=100_000, hard=80_000, soft=60_000)),
        ({"threshold_pct": 0.5}, Limits(window=100_000, hard=50_000, soft=37_500)),
        ({"threshold_pct": 0.8, "soft_threshold_pct": 0.4}, Limits(window=100_000, hard=80_000, soft=40_000)),
        ({"soft_threshold_pct": 1.0}, Limits(window=100_000, hard=80_000, soft=80_000)),
        ({"cap_tokens": 20_000}, Limits(window=100_000, hard=20_000, soft=15_000)),
        ({"cap_tokens": 20_000, "soft_threshold_pct": 0.4}, Limits(window=100_000, hard=20_000, soft=10_000)),
        ({"cap_tokens": 900_000}, Limits(window=100_000, hard=80_000, soft=60_000)),
    ],
)
def test_thresholds(options: dict[str, Any], expected: Limits) -> None:
    assert CompactionOptions(**options).limits(100_000) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"threshold_pct": 80},
        {"threshold_pct": 0},
        {"soft_threshold_pct": -0.1},
        {"context_window": 0},
        {"cap_tokens": -5},
    ],
)
def test_impossible_options_are_refused_when_the_engine_is_made(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        engine_with(ScriptedProvider(), tmp_path, **options)


def test_the_environment_fills_in_what_was_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_WINDOW", "32000")
    monkeypatch.setenv("COMPACTION_THRESHOLD_PCT", "0.5")
    monkeypatch.setenv("COMPACTION_SOFT_THRESHOLD_PCT", "0.25")
    monkeypatch.setenv("COMPACTION_CAP_TOKENS", "9000")
    assert CompactionOptions.from_env() == CompactionOptions(
        context_window=32_000, threshold_pct=0.5, soft_threshold_pct=0.25, cap_tokens=9000
    )
    assert CompactionOptions.from_env(1000, 0.9, 0.1, 50) == CompactionOptions(
        context_window=1000, threshold_pct=0.9, soft_threshold_pct=0.1, cap_tokens=50
    )


def test_an_empty_environment_gives_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONTEXT_WINDOW", "COMPACTION_THRESHOLD_PCT", "COMPACTION_SOFT_THRESHOLD_PCT"):
        monkeypatch.setenv(name, " ")
    monkeypatch.delenv("COMPACTION_CAP_TOKENS", raising=False)
    assert CompactionOptions.from_env() == CompactionOptions()


@pytest.mark.parametrize("value", ["lots", "80%"])
def test_nonsense_in_the_environment_names_the_variable(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPACTION_THRESHOLD_PCT", value)
    with pytest.raises(UsageError, match="COMPACTION_THRESHOLD_PCT"):
        CompactionOptions.from_env()
