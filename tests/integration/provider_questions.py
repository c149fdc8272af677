"""What the provider's network tests share: answers, options and questions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.integration.raw_server import Answer, RawServer, json_answer
from tests.unit.providers.sse_bytes import data, delta, named
from zq_notebook.engine.messages import StreamChunk
from zq_notebook.engine.ports import StreamOptions
from zq_notebook.providers.openai import OpenAIProvider

KEY = "sk-test-0123456789abcdef"
CHAT_OK = Answer([data(delta(content="from chat"), delta("stop"), "[DONE]")])
DONE = {"type": "response.completed", "response": {"object": "response", "status": "completed"}}
RESPONSES_OK = Answer([named({"type": "response.output_text.delta", "delta": "from responses"}, DONE)])
NOT_FOUND = json_answer({"error": {"message": "Not Found"}}, 404)
COMPLAINT = json_answer({"error": {"message": "Unknown parameter: 'store'", "param": "store"}}, 400)


def options(**fields: Any) -> StreamOptions:
    return StreamOptions(req_id=fields.pop("req_id", "req-1"), log_time="2026-01-31T10:00:00Z", **fields)


@pytest.fixture
async def provider(raw_server: RawServer) -> AsyncIterator[OpenAIProvider]:
    made = OpenAIProvider(KEY, raw_server.base_url, max_retries=0)
    yield made
    await made.aclose()


async def ask(provider: OpenAIProvider, model: str = "m", opts: StreamOptions | None = None) -> list[StreamChunk]:
    messages = [{"role": "user", "content": "hi"}]
    return [chunk async for chunk in provider.stream(model, messages, [], opts or options())]


async def text_of(provider: OpenAIProvider, model: str = "m") -> str:
    return "".join(chunk.content or "" for chunk in await ask(provider, model))
