"""The soft threshold: old tool results go, without asking the model, and not at every request."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.unit.engine_compaction.helpers import (
    called,
    contents,
    engine_with,
    one,
    registry_with,
    system,
    talk,
    turn,
    types,
)
from zq_notebook.providers.scripted import ScriptedProvider, Step

GONE = "[Earlier result of grep removed to make room. Make the call again if you need it.]"


def searches(count: int, characters: int = 400) -> list[dict[str, Any]]:
    found = [{"role": "user", "content": "search"}]
    for number in range(count):
        found += called(number, "grep", f'{{"n":{number}}}', f"result {number} ".ljust(characters, "r"))
    return [*found, {"role": "assistant", "content": "that was it"}]


async def test_old_results_give_way_to_notes_without_a_model_call(tmp_path: Path) -> None:
    provider = ScriptedProvider(["ok"])
    engine = engine_with(provider, tmp_path, messages=[system(), *searches(10)], context_window=1900)
    before = len(engine.messages)
    events = await turn(engine)
    assert types(events)[:3] == ["turn_start", "compacted", "llm_request"]
    compacted = one(events, "compacted")
    assert compacted.data == {
        "reqId": compacted.req_id,
        "taskId": "t1",
        "method": "trimmed",
        "messagesBefore": before + 1,
        "messagesAfter": before + 1,
    }
    assert provider.chat_requests == []
    results = [m["content"] for m in provider.requests[0].messages if m["role"] == "tool"]
    assert results[:7] == [GONE] * 7
    # The newest quarter stays.
    assert [text[:8] for text in results[-2:]] == ["result 8", "result 9"]
    assert engine.compaction_state.evictions == 1
    assert engine.compaction_state.tokens < 900


async def test_a_file_that_was_read_again_keeps_its_newest_reading_only(tmp_path: Path) -> None:
    reads = [m for n in range(4) for m in called(n, "read_file", '{"path":"a.py"}', f"version {n} " + "x" * 900)]
    history = [system(), {"role": "user", "content": "look"}, *reads, {"role": "assistant", "content": "done"}]
    engine = engine_with(ScriptedProvider(["ok"]), tmp_path, messages=history, context_window=1500)
    await turn(engine)
    results = [m["content"] for m in engine.messages if m["role"] == "tool"]
    assert results[:3] == ["[a.py was read again later; the later result is the current one.]"] * 3


@pytest.mark.parametrize(
    ("variables", "left"),
    [
        ({"COMPACTION_ELIDE": "0"}, {"read": 1, "grep": 4}),
        ({"COMPACTION_DEDUP": "0"}, {"read": 0, "grep": 0}),
        ({"COMPACTION_ELIDE": "0", "COMPACTION_DEDUP": "0"}, {"read": 4, "grep": 4}),
        ({"COMPACTION_ELIDE": "1"}, {"read": 0, "grep": 0}),
    ],
)
async def test_both_kinds_can_be_switched_off(
    variables: dict[str, str], left: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    reads = [m for n in range(4) for m in called(n, "read_file", '{"path":"a.py"}', "read " * 100)]
    greps = [m for n in range(4, 8) for m in called(n, "grep", "{}", "grep " * 100)]
    end = {"role": "assistant", "content": "e" * 1600}
    history = [system(), {"role": "user", "content": "look"}, *reads, *greps, end]
    engine = engine_with(ScriptedProvider(["ok"]), tmp_path, messages=history, context_window=2100)
    events = await turn(engine)
    assert "compacting" not in types(events)
    results = [text for text in contents(engine.messages) if text.startswith(("read ", "grep "))]
    assert {kind: sum(text.startswith(kind) for text in results) for kind in ("read", "grep")} == left
    assert ("compacted" in types(events)) == (sum(left.values()) < 8)


async def test_the_beginning_of_requests_changes_in_steps_only(tmp_path: Path) -> None:
    registry = registry_with({"grep": lambda args: "hit " * 100})
    steps = [Step("", tool_calls=[("grep", {"n": n})]) for n in range(60)]
    provider = ScriptedProvider([*steps, "done"], chat_replies=["notes"] * 60)
    engine = engine_with(provider, tmp_path, registry, context_window=8000, soft_threshold_pct=0.4)
    events = await turn(engine)
    sent = [request.messages for request in provider.requests]
    changes = sum(later[: len(earlier)] != earlier for earlier, later in itertools.pairwise(sent))
    assert changes == types(events).count("compacted")
    assert 2 <= changes <= 12
    provider.assert_finished()


async def test_above_the_soft_threshold_for_good_results_still_go_in_steps(tmp_path: Path) -> None:
    registry = registry_with({"grep": lambda args: "hit " * 100})
    steps = [Step("", tool_calls=[("grep", {"n": n})]) for n in range(40)]
    provider = ScriptedProvider([*steps, "done"])
    engine = engine_with(
        provider, tmp_path, registry, messages=[system(), *talk(4, 1600)], context_window=12_000, soft_threshold_pct=0.1
    )
    events = await turn(engine)
    assert "compacting" not in types(events)
    assert 1 <= types(events).count("compacted") <= 4


async def test_messages_that_somebody_kept_are_not_changed_under_them(tmp_path: Path) -> None:
    engine = engine_with(ScriptedProvider(["ok"]), tmp_path, messages=[system(), *searches(10)], context_window=1900)
    kept = list(engine.messages)
    copies = [dict(message) for message in kept]
    await turn(engine)
    assert kept == copies
    assert GONE in contents(engine.messages)


async def test_results_that_the_model_has_not_seen_yet_are_never_evicted(tmp_path: Path) -> None:
    registry = registry_with({"grep": lambda args: "fresh " * 400})
    step = Step("", tool_calls=[("grep", {"n": 1}), ("grep", {"n": 2})])
    provider = ScriptedProvider([step, "done"])
    engine = engine_with(provider, tmp_path, registry, context_window=1700)
    await turn(engine)
    results = [m["content"] for m in provider.requests[1].messages if m["role"] == "tool"]
    assert results == ["fresh " * 400] * 2
