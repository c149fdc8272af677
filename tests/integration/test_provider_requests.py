"""Which API a request goes to, with which key, and what becomes of a server's errors."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.integration.provider_questions import (
    CHAT_OK,
    COMPLAINT,
    KEY,
    NOT_FOUND,
    RESPONSES_OK,
    ask,
    provider,
    text_of,
)
from tests.integration.raw_server import Answer, RawServer, json_answer
from tests.unit.engine.play import make_engine, of_type, play
from tests.unit.providers.sse_bytes import data, delta
from zq_notebook.errors import (
    ApiKeyMissingError,
    ApiStatusError,
    ContextOverflowError,
    NetworkError,
    UsageError,
)
from zq_notebook.providers.openai import OpenAIProvider

__all__ = ["provider"]


async def test_responses_come_first(raw_server: RawServer, provider: OpenAIProvider) -> None:
    raw_server.answers = [RESPONSES_OK]
    assert await text_of(provider) == "from responses"
    request = raw_server.requests[0]
    assert request.path == "/v1/responses"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.body["input"] == [{"type": "message", "role": "user", "content": "hi"}]


@pytest.mark.parametrize("status", [404, 405, 501])
async def test_missing_endpoint_is_remembered_for_the_model(
    raw_server: RawServer, provider: OpenAIProvider, status: int
) -> None:
    raw_server.answers = [json_answer({"detail": "no"}, status), CHAT_OK, CHAT_OK, RESPONSES_OK]
    assert [await text_of(provider), await text_of(provider), await text_of(provider, "other")] == [
        *["from chat"] * 2,
        "from responses",
    ]
    assert [p.rsplit("/", 1)[1] for p in raw_server.paths] == ["responses", "completions", "completions", "responses"]


async def test_parameter_complaint_concerns_one_request(raw_server: RawServer, provider: OpenAIProvider) -> None:
    raw_server.answers = [COMPLAINT, CHAT_OK, RESPONSES_OK]
    assert [await text_of(provider), await text_of(provider)] == ["from chat", "from responses"]


async def test_refused_optional_field_is_not_sent_again(raw_server: RawServer, provider: OpenAIProvider) -> None:
    refusal = json_answer({"error": {"message": "verify your organization", "param": "reasoning.summary"}}, 400)
    raw_server.answers = [refusal, CHAT_OK, RESPONSES_OK]
    await text_of(provider, "gpt-5")
    assert await text_of(provider, "gpt-5") == "from responses"
    assert raw_server.requests[0].body["reasoning"] == {"summary": "auto"}
    assert "reasoning" not in raw_server.requests[2].body


async def test_chat_without_stream_options_when_they_are_refused(raw_server: RawServer) -> None:
    raw_server.answers = [json_answer({"message": "Extra inputs are not permitted: stream_options"}, 422), CHAT_OK]
    provider = OpenAIProvider(KEY, raw_server.base_url, api_mode="chat")
    assert await text_of(provider) == "from chat"
    assert [("stream_options" in r.body) for r in raw_server.requests] == [True, False]
    await provider.aclose()


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
async def test_other_errors_are_raised_without_trying_chat(
    raw_server: RawServer, provider: OpenAIProvider, status: int
) -> None:
    raw_server.answers = [json_answer({"error": {"message": f"no {KEY}", "code": "some_code"}}, status)]
    with pytest.raises(ApiStatusError) as caught:
        await ask(provider)
    assert (caught.value.status, caught.value.code) == (status, "some_code")
    assert caught.value.retriable is (status in (429, 500, 503))
    assert KEY not in str(caught.value)
    assert len(raw_server.requests) == 1


async def test_model_that_only_responses_knows_gets_the_error_of_responses(
    raw_server: RawServer, provider: OpenAIProvider
) -> None:
    raw_server.answers = [COMPLAINT, json_answer({"error": {"message": "This is not a chat model"}}, 404)]
    with pytest.raises(ApiStatusError, match="Unknown parameter: 'store'"):
        await ask(provider)


async def test_neither_endpoint_says_to_check_the_address(raw_server: RawServer, provider: OpenAIProvider) -> None:
    raw_server.answers = [NOT_FOUND]
    with pytest.raises(ApiStatusError, match="OPENAI_BASE_URL"):
        await ask(provider)
    assert len(raw_server.requests) == 2


@pytest.mark.parametrize("mode", ["responses", "chat"])
async def test_forced_mode_never_falls_back(raw_server: RawServer, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("OPENAI_FORCE_API_MODE", mode)
    raw_server.answers = [NOT_FOUND]
    provider = OpenAIProvider(KEY, raw_server.base_url)
    with pytest.raises(ApiStatusError):
        await ask(provider)
    assert len(raw_server.requests) == 1
    assert ("responses" in raw_server.paths[0]) is (mode == "responses")
    await provider.aclose()


async def test_context_overflow(raw_server: RawServer, provider: OpenAIProvider) -> None:
    raw_server.answers = [json_answer({"error": {"message": "x", "code": "context_length_exceeded"}}, 400)]
    with pytest.raises(ContextOverflowError):
        await ask(provider)
    assert len(raw_server.requests) == 1


# Retries, keys, environment


async def test_sdk_retries_429_as_often_as_the_environment_says(
    raw_server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_MAX_RETRIES", "1")
    limited = json_answer({"error": {"message": "slow"}}, 429, **{"retry-after-ms": "1"})
    provider = OpenAIProvider(KEY, raw_server.base_url)
    raw_server.answers = [limited, RESPONSES_OK]
    assert await text_of(provider) == "from responses"
    raw_server.answers = [limited]
    with pytest.raises(ApiStatusError):
        await ask(provider)
    assert len(raw_server.requests) == 4
    await provider.aclose()


async def test_lost_connection_is_left_to_the_engine_to_retry(raw_server: RawServer) -> None:
    provider = OpenAIProvider(KEY, raw_server.base_url, max_retries=5)
    raw_server.answers = [Answer(cut=True)]
    with pytest.raises(NetworkError) as caught:
        await ask(provider)
    assert caught.value.retriable
    assert raw_server.connections == 1
    await provider.aclose()


async def test_unreachable_server() -> None:
    provider = OpenAIProvider(KEY, "http://127.0.0.1:9/v1")
    with pytest.raises(NetworkError, match=r"Could not reach 127\.0\.0\.1:9 .* running"):
        await ask(provider)
    await provider.aclose()


async def test_server_that_does_not_answer_in_time(raw_server: RawServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_TIMEOUT_MS", "50")
    never = asyncio.Event()

    raw_server.answers = [Answer()]

    async def wait_for_ever(*args: Any) -> bool:
        await never.wait()
        return False

    monkeypatch.setattr(raw_server, "_send", wait_for_ever)
    provider = OpenAIProvider(KEY, raw_server.base_url)
    with pytest.raises(NetworkError, match="did not answer in time"):
        await ask(provider)
    never.set()
    await provider.aclose()


async def test_missing_key_is_said_at_the_first_request_and_not_needed_at_home(raw_server: RawServer) -> None:
    with pytest.raises(ApiKeyMissingError, match="OPENAI_API_KEY is not set"):
        await ask(OpenAIProvider())
    raw_server.answers = [RESPONSES_OK]
    provider = OpenAIProvider(base_url=raw_server.base_url)
    assert await text_of(provider) == "from responses"
    await provider.aclose()


async def test_key_set_later_is_used(raw_server: RawServer, monkeypatch: pytest.MonkeyPatch) -> None:
    raw_server.answers = [RESPONSES_OK]
    monkeypatch.setenv("OPENAI_BASE_URL", raw_server.base_url)
    provider = OpenAIProvider()
    await ask(provider)
    monkeypatch.setenv("OPENAI_API_KEY", "k-second")
    monkeypatch.setenv("OPENAI_REASONING_EFFORT", "low")
    await ask(provider)
    assert raw_server.requests[1].headers["authorization"] == "Bearer k-second"
    assert raw_server.requests[1].body["reasoning"]["effort"] == "low"
    await provider.aclose()


async def test_proxy_of_the_environment_is_used(raw_server: RawServer, monkeypatch: pytest.MonkeyPatch) -> None:
    raw_server.answers = [RESPONSES_OK]
    monkeypatch.setenv("HTTP_PROXY", raw_server.base_url.removesuffix("/v1"))
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")
    provider = OpenAIProvider(KEY, "http://model.test/v1")
    assert await text_of(provider) == "from responses"
    assert raw_server.requests[0].path == "http://model.test/v1/responses"
    await provider.aclose()


async def test_socks_proxy_gets_one_clear_paragraph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks9://127.0.0.1:1")
    with pytest.raises(UsageError, match="proxy settings"):
        await ask(OpenAIProvider(KEY, "http://model.test/v1"))


async def test_arguments_nested_too_deeply_spoil_neither_this_turn_nor_the_next(raw_server: RawServer) -> None:
    deep = '{"n":' + "[" * 2000 + "]" * 2000 + "}"
    # Without ids and with one index for both: where a call begins is told from the arguments before it.
    calls = [{"index": 0, "function": {"name": "look", "arguments": arguments}} for arguments in ('{"n":1}', deep, "")]
    asks = Answer([data(*(delta(tool_calls=[call]) for call in calls), delta("tool_calls"), "[DONE]")])
    raw_server.answers = [asks, CHAT_OK, CHAT_OK]
    provider = OpenAIProvider(KEY, raw_server.base_url, api_mode="chat", max_retries=0)
    engine = make_engine(provider, low={"look": lambda args: "seen"})
    for text in ("look", "and now?"):
        assert of_type(await play(engine, text), "turn_end")[0].data["status"] == "completed"
        assert engine.messages[-1]["content"] == "from chat"
    sent = raw_server.requests[2].body["messages"]
    assert any("[" * 2000 in call["function"]["arguments"] for m in sent for call in m.get("tool_calls") or ())
    await provider.aclose()
