"""Random long sessions with every kind of trouble: the history is valid at every request and at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.engine_compaction.helpers import engine_with, overflow, registry_with
from zq_notebook.engine.history import problems
from zq_notebook.providers.scripted import ScriptedProvider, Step

steps = st.one_of(
    st.integers(0, 3000).map(lambda n: Step("t" * n)),
    st.builds(
        lambda n, size, path: Step("", tool_calls=[("read_file", {"path": path, "size": size})] * n),
        st.integers(1, 3),
        st.integers(0, 3000),
        st.sampled_from("abc"),
    ),
    st.integers(0, 3000).map(lambda n: Step("t" * 20, usage={"prompt_tokens": n, "completion_tokens": 5})),
    st.just(Step(error=overflow())),
)
notes = st.one_of(st.none(), st.integers(1, 4000).map(lambda n: "n" * n))


class Checked(ScriptedProvider):
    """Looks at every history that it is sent."""

    async def stream(self, model: str, messages: Any, tools: Any, opts: Any) -> AsyncIterator[Any]:
        assert problems(messages) == []
        assert messages[-1]["role"] != "assistant"
        async for chunk in super().stream(model, messages, tools, opts):
            yield chunk


@given(
    script=st.lists(steps, max_size=25),
    replies=st.lists(notes, max_size=10),
    said=st.lists(st.integers(1, 2000), min_size=1, max_size=5),
    window=st.integers(200, 4000),
)
@settings(max_examples=60, deadline=None)
def test_any_session_stays_valid_and_comes_to_its_end(
    script: list[Step], replies: list[str | None], said: list[int], window: int
) -> None:
    async def play() -> None:
        registry = registry_with({"read_file": lambda args: "r" * args["size"]})
        provider = Checked(script, chat_replies=replies)
        engine = engine_with(provider, Path("/"), registry, context_window=window, max_iterations=8)
        for number, length in enumerate(said):
            text = f"{number} ".ljust(length, "u")
            events = [event async for event in engine.run(text)]
            kinds = [event.type for event in events]
            assert kinds.count("turn_end") == 1
            assert kinds[-1] == "turn_end"
            assert problems(engine.messages) == []
            assert engine.messages[0]["content"] == "Be brief."
            assert text in [m["content"] for m in engine.messages]
            assert kinds.count("compacting") <= kinds.count("llm_request")
            assert not any(isinstance(e.data.get("stack"), str) and "AssertionError" in e.data["stack"] for e in events)

    asyncio.run(play())
