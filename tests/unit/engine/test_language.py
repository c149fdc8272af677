"""What the engine says to the model, in the language of its session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.engine.play import make_engine, play, results
from zq_notebook.engine.approval import ApprovalReply
from zq_notebook.errors import UsageError
from zq_notebook.languages.catalog import PROMPT_LANGS, get_prompts
from zq_notebook.permissions.decision import Mode
from zq_notebook.providers.scripted import ScriptedProvider, Step

ACT = Step("", tool_calls=[("act", {})])


@pytest.fixture(autouse=True)
def no_language_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ZQ_LANG", raising=False)


async def told(answer: Any, mode: Mode = Mode.INTERACTIVE, **options: Any) -> str:
    """What the model reads in place of the result of a call that was answered with ``answer``."""
    engine = make_engine([ACT, "ok"], high={"act": str}, approver=lambda request: answer, mode=mode, **options)
    await play(engine)
    return results(engine)[0]


@pytest.mark.parametrize("lang", PROMPT_LANGS)
async def test_denials_are_in_the_language_of_the_session(lang: str) -> None:
    texts = get_prompts(lang).results
    assert await told("deny", lang=lang) == texts.denied_by_user
    reply = ApprovalReply("deny", reason="not {today}")  # type: ignore[arg-type]
    assert await told(reply, lang=lang) == texts.denied_by_user_reason.format(reason="not {today}")
    before = texts.denied_by_permissions.partition("{reason}")[0]
    assert (await told("once", mode=Mode.PLAN, lang=lang)).startswith(before)


async def test_a_denial_keeps_the_model_from_another_way_with_and_without_a_reason() -> None:
    reply = ApprovalReply("deny", reason="not today")  # type: ignore[arg-type]
    for text in (await told("deny"), await told(reply), await told("once", mode=Mode.PLAN)):
        assert "denied" in text
        assert "Do not" in text
    assert (await told(reply)).endswith("Reason given: not today")
    assert (await told("once", mode=Mode.PLAN)).count("Reason given:") == 1


async def test_the_limit_of_steps_and_a_lost_result_are_told_in_the_language_of_the_session() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    lost = [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "user", "content": "so?"}]
    provider = ScriptedProvider([Step("", tool_calls=[("look", {})]), "closing"])
    engine = make_engine(
        provider, low={"look": str}, lang="zh", messages=lost, max_iterations=1, finalize_on_max_iterations=True
    )
    await play(engine)
    assert results(engine)[0] == get_prompts("zh").results.missing
    assert provider.requests[1].messages[-1]["content"] == get_prompts("zh").notices.finalize.format(limit=1)


async def test_a_call_that_had_not_begun_is_told_apart_from_one_that_had() -> None:
    texts = get_prompts("es").results

    def stop(args: Any, ctx: Any) -> str:
        engine.request_interrupt()
        ctx.cancel.wait()
        raise KeyError("never mind")

    engine = make_engine(
        [Step("", tool_calls=[("stop", {}), ("act", {})])], low={}, high={"stop": stop, "act": str}, lang="es"
    )
    engine.set_approver(lambda request: "once")
    await play(engine)
    assert results(engine)[1] == texts.not_started


def test_the_variable_gives_the_language_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZQ_LANG", "ko")
    assert make_engine([]).lang == "ko"
    assert make_engine([], lang="zh_tw").lang == "zh-TW"


def test_an_unknown_language_is_refused_when_the_engine_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'tlh'.*zh, en, zh-TW, ja, ko, es"):
        make_engine([], lang="tlh", workspace=tmp_path)
