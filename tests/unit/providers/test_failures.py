"""Errors of servers and networks, in one paragraph and without keys."""

from __future__ import annotations

from typing import Any

import pytest

from zq_notebook.errors import ApiStatusError, ContextOverflowError, NetworkError, StreamError
from zq_notebook.providers.failures import (
    ErrorBody,
    Server,
    is_complaint,
    is_endpoint_missing,
    network_error,
    status_error,
    stream_failure,
)

KEY = "sk-test-0123456789abcdef"
SERVER = Server(host="model.test", model="m", secrets=(KEY,))


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "why", "code": 7, "type": "t", "param": "p"}},
        {"error": "why"},
        {"message": "why"},
        {"detail": "why"},
        {"detail": [{"loc": ["body"], "msg": "why"}]},
        "why",
        [1],
        None,
        {"error": {"error": {"message": "why"}}},
    ],
)
def test_error_bodies_of_every_shape(body: Any) -> None:
    said = ErrorBody.of(body)
    assert ("why" in said.message) is (body not in ([1], None))


def test_a_web_page_is_not_quoted() -> None:
    assert ErrorBody.of("<!doctype html><html>x</html>").message == ""


@pytest.mark.parametrize(
    ("status", "says", "retriable"),
    [(401, "OPENAI_API_KEY", False), (403, "what the key may use", False), (404, "OPENAI_BASE_URL", False),
     (400, "did not accept", False), (408, "did not accept", True), (429, "limiting", True),
     (500, "server's side", True), (529, "server's side", True)],
)  # fmt: skip
def test_status_errors_say_what_to_do(status: int, says: str, retriable: bool) -> None:
    error = status_error(status, ErrorBody("detail\nover lines"), SERVER)
    assert says in str(error)
    assert "detail over lines" in str(error)
    assert "\n" not in str(error)
    assert (error.status, error.retriable) == (status, retriable)


def test_used_up_quota_is_not_retriable() -> None:
    error = status_error(429, ErrorBody("You exceeded your current quota", code="insufficient_quota"), SERVER)
    assert not error.retriable
    assert "billing" in str(error)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens",
        "Your input exceeds the context window of this model",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "the request exceeds the available context size, try increasing it",
        "Please reduce the length of the messages",
    ],
)
def test_context_overflow_is_told_apart(message: str) -> None:
    error = status_error(400, ErrorBody(message), SERVER)
    assert isinstance(error, ContextOverflowError)
    assert not error.retriable
    assert isinstance(stream_failure({"message": message}, SERVER), ContextOverflowError)
    assert not is_complaint(400, ErrorBody(message))


@pytest.mark.parametrize(
    "text", [f"Incorrect API key provided: {KEY}.", "bad key sk-proj-********wxyz", "Bearer abcdefgh1234567890xyz"]
)
def test_keys_are_never_quoted(text: str) -> None:
    for error in (
        status_error(401, ErrorBody(text), SERVER),
        stream_failure({"message": text}, SERVER),
        network_error(OSError(text), SERVER),
    ):
        assert "redacted" in str(error)
        for part in (KEY, "wxyz", "abcdefgh1234567890xyz"):
            assert part not in str(error)


def test_long_details_are_cut() -> None:
    assert len(str(status_error(400, ErrorBody("x" * 9000), SERVER))) < 800


@pytest.mark.parametrize(
    ("status", "message", "complaint"),
    [
        (400, "Unknown parameter: 'include'", True),
        (400, "Unsupported value: 'store'", True),
        (400, "The responses endpoint is not enabled here", True),
        (400, "'messages' is a required property", True),
        (422, "anything", True),
        (400, "Your account is not active", False),
        (401, "Unknown parameter", False),
        (429, "unsupported", False),
        (500, "unsupported", False),
    ],
)
def test_complaints_about_the_form(status: int, message: str, complaint: bool) -> None:
    assert is_complaint(status, ErrorBody(message)) is complaint


def test_missing_endpoints() -> None:
    assert [s for s in (400, 401, 404, 405, 410, 429, 500, 501) if is_endpoint_missing(s)] == [404, 405, 501]


def test_network_errors_say_where_to_look() -> None:
    local = Server(host="localhost:11434", local=True)
    assert "running" in str(network_error(ConnectionRefusedError("refused"), local))
    assert "HTTPS_PROXY" in str(network_error(ConnectionRefusedError("refused"), SERVER))
    assert "OPENAI_TIMEOUT_MS" in str(network_error(TimeoutError(), SERVER))
    assert "SSL_CERT_FILE" in str(network_error(OSError("CERTIFICATE_VERIFY_FAILED"), SERVER))
    assert isinstance(network_error(OSError("x"), SERVER), NetworkError)
    assert isinstance(network_error(OSError("x"), SERVER, in_stream=True), StreamError)


def test_errors_in_a_stream_have_the_status_they_stand_for() -> None:
    error = stream_failure({"message": "x", "type": "overloaded_error"}, SERVER)
    assert isinstance(error, ApiStatusError)
    assert error.status == 503
