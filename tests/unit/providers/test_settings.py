"""Settings from arguments and environment, at the moment of use."""

from __future__ import annotations

import pytest

from zq_notebook.errors import ApiKeyMissingError, UsageError
from zq_notebook.providers.openai import OpenAIProvider
from zq_notebook.providers.settings import is_private_host, read_settings


def test_defaults() -> None:
    settings = read_settings()
    assert settings.base_url == "https://api.openai.com/v1"
    assert (settings.max_retries, settings.timeout_ms, settings.api_mode) == (2, 600_000, None)
    assert settings.is_official
    with pytest.raises(ApiKeyMissingError, match="OPENAI_API_KEY is not set"):
        settings.require_key()


def test_environment_is_read_when_used_and_arguments_win(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = OpenAIProvider(max_retries=7)
    monkeypatch.setenv("OPENAI_API_KEY", " k-from-env ")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://10.0.0.7:8000/v1")
    monkeypatch.setenv("OPENAI_MAX_RETRIES", "0")
    monkeypatch.setenv("OPENAI_TIMEOUT_MS", "1500")
    monkeypatch.setenv("OPENAI_STREAM_IDLE_MS", "250")
    monkeypatch.setenv("OPENAI_FORCE_API_MODE", "Chat")
    settings = provider.settings()
    assert (settings.api_key, settings.host, settings.max_retries) == ("k-from-env", "10.0.0.7:8000", 7)
    assert (settings.timeout_ms, settings.stream_idle_ms, settings.api_mode) == (1500, 250, "chat")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OPENAI_MAX_RETRIES", "many"),
        ("OPENAI_MAX_RETRIES", "-1"),
        ("OPENAI_TIMEOUT_MS", "0"),
        ("OPENAI_STREAM_IDLE_MS", "1.5"),
        ("OPENAI_FORCE_API_MODE", "both"),
        ("OPENAI_BASE_URL", "localhost:11434/v1"),
        ("OPENAI_API_KEY", "two words"),
        ("OPENAI_API_KEY", "schlüssel"),
    ],
)
def test_values_that_cannot_be_used_name_their_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match=variable) as caught:
        read_settings()
    if variable == "OPENAI_API_KEY":
        assert value not in str(caught.value)


def test_key_is_not_in_any_repr() -> None:
    key = "sk-secret-123456"
    assert key not in repr(read_settings(api_key=key))
    assert repr(OpenAIProvider(key, f"http://user:{key}@localhost/v1")) == "OpenAIProvider()"


def test_user_name_and_password_of_an_address_are_not_shown() -> None:
    assert read_settings(base_url="https://me:pw@gateway.test/v1").host == "gateway.test"


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "::1", "10.1.2.3", "192.168.1.5", "169.254.1.1", "gpu.local", "ollama",
             "a.localhost", "host.docker.internal"],
)  # fmt: skip
def test_private_hosts_need_no_key(host: str) -> None:
    assert is_private_host(host)


@pytest.mark.parametrize("host", ["api.openai.com", "8.8.8.8", "localhost.example.com", "2606:4700::1111"])
def test_public_hosts_need_one(host: str) -> None:
    assert not is_private_host(host)
