"""Where requests go and how patiently: from arguments, or from the environment at the moment of use (Manual §10.1)."""

from __future__ import annotations

import ipaddress
import os
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from zq_notebook.errors import ApiKeyMissingError, UsageError

DEFAULT_BASE_URL = "https://api.openai.com/v1"
DEFAULT_MAX_RETRIES = 2
DEFAULT_TIMEOUT_MS = 600_000
DEFAULT_STREAM_IDLE_MS = 300_000

ApiMode: TypeAlias = Literal["responses", "chat"]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a connection depends on; two equal ones can share it."""

    api_key: str
    base_url: str
    max_retries: int
    timeout_ms: int
    stream_idle_ms: int
    api_mode: ApiMode | None

    def __repr__(self) -> str:
        return f"Settings(host={self.host!r})"  # the key must not get into a traceback

    @property
    def host(self) -> str:
        """Host and port, without user name or path: for messages."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine or a private network, where no key is needed."""
        return is_private_host(urlsplit(self.base_url).hostname or "")

    @property
    def is_official(self) -> bool:
        """Whether the server is OpenAI's own, or Azure's."""
        host = urlsplit(self.base_url).hostname or ""
        return host.endswith((".openai.com", ".azure.com"))

    def require_key(self) -> str:
        """The key to send; raises ApiKeyMissingError where one is needed and there is none."""
        if self.api_key:
            return self.api_key
        if not self.is_local:
            raise ApiKeyMissingError
        return "none-needed"


def is_private_host(host: str) -> bool:
    """Whether ``host`` names this machine, a private address, or something only a local network knows."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.lower().rstrip(".")
        return "." not in name or name.endswith((".localhost", ".local", ".internal", ".lan", ".home.arpa"))
    return address.is_private or address.is_loopback or address.is_link_local


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip()


def _count(name: str, given: int | None, default: int, least: int) -> int:
    if given is None:
        text = _variable(name)
        if not text:
            return default
        try:
            given = int(text)
        except ValueError:
            given = least - 1
    if given < least:
        raise UsageError(f"{name} must be a whole number of at least {least}. Correct it or unset it.")
    return given


def _base_url(given: str | None) -> str:
    url = (given or _variable("OPENAI_BASE_URL") or DEFAULT_BASE_URL).strip()
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False  # a port that is none, brackets that do not fit
    if not usable or any(char.isspace() for char in url):
        raise UsageError(
            "The model server's address (OPENAI_BASE_URL or base_url=) must begin with http:// or https:// and name a "
            "host, as in http://localhost:11434/v1. Correct it or unset it."
        )
    return url


def _api_key(given: str | None) -> str:
    key = (given if given is not None else _variable("OPENAI_API_KEY")).strip()
    if not key.isascii() or any(c.isspace() for c in key):
        raise UsageError(
            "The API key (OPENAI_API_KEY or api_key=) holds a space, a line break or a character outside ASCII, which "
            "no key does. Copy it again."
        )
    return key


def _api_mode(given: str | None) -> ApiMode | None:
    mode = (given or _variable("OPENAI_FORCE_API_MODE")).lower()
    if mode == "responses":
        return "responses"
    if mode == "chat":
        return "chat"
    if mode:
        raise UsageError("OPENAI_FORCE_API_MODE (or api_mode=) is 'responses' or 'chat'. Correct it or unset it.")
    return None


def read_settings(
    *,
    api_key: str | None = None,
    base_url: str | None = None,
    max_retries: int | None = None,
    timeout_ms: int | None = None,
    stream_idle_ms: int | None = None,
    api_mode: str | None = None,
) -> Settings:
    """Settings from the arguments given, and for the others from the environment.

    Raises UsageError for a value that cannot be used, naming its variable.
    """
    return Settings(
        api_key=_api_key(api_key),
        base_url=_base_url(base_url),
        max_retries=_count("OPENAI_MAX_RETRIES", max_retries, DEFAULT_MAX_RETRIES, 0),
        timeout_ms=_count("OPENAI_TIMEOUT_MS", timeout_ms, DEFAULT_TIMEOUT_MS, 1),
        stream_idle_ms=_count("OPENAI_STREAM_IDLE_MS", stream_idle_ms, DEFAULT_STREAM_IDLE_MS, 0),
        api_mode=_api_mode(api_mode),
    )


def reasoning_effort() -> str | None:
    """The effort that the environment asks for."""
    return _variable("OPENAI_REASONING_EFFORT") or None
