"""The model ``demo``: its words are canned, its tools are real.

It knows the tasks of the quickstart notebook and of the README's program, and plays a scripted turn for each, whose
later steps use what the tools really returned. To any other task it answers with what this model is and how to choose a
real one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from zq_notebook.engine.messages import StreamChunk
from zq_notebook.engine.ports import ProviderClient, StreamOptions
from zq_notebook.providers.demo_script import Turn, next_step
from zq_notebook.providers.scripted import ScriptedProvider

SECONDS_PER_WORD = 0.006


def demo_provider(seconds_per_word: float = SECONDS_PER_WORD) -> ProviderClient:
    """A provider for the model ``demo``, which speaks at ``seconds_per_word``.

    It keeps no state: each reply follows from the request's messages alone.
    """
    return DemoProvider(seconds_per_word)


class DemoProvider:
    """Chooses the step that fits the conversation and lets a :class:`ScriptedProvider` say it."""

    def __init__(self, seconds_per_word: float) -> None:
        self._seconds_per_word = seconds_per_word

    async def stream(
        self, model: str, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], opts: StreamOptions
    ) -> AsyncIterator[StreamChunk]:
        """The next reply of the turn that the last user message began."""
        step = replace(next_step(Turn.of(messages, tools)), delay=self._seconds_per_word)
        async for chunk in ScriptedProvider([step]).stream(model, messages, tools, opts):
            yield chunk

    async def chat(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        options: Mapping[str, Any] | None,
        opts: StreamOptions,
        params: Mapping[str, Any] | None = None,
    ) -> str | None:
        """No answer: the script has nothing to say outside of a turn."""
        return None

    async def aclose(self) -> None:
        """Nothing to close."""
