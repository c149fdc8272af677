"""When a failed request is sent again (Manual §9.4)."""

from __future__ import annotations

import os

import msgspec

from zq_notebook.errors import NetworkError, ProviderError, StreamError


def env_int(name: str, default: int) -> int:
    """The environment variable ``name`` as a whole number of at least 0, ``default`` when unset or not a number."""
    try:
        return max(0, int(os.environ.get(name, "")))
    except ValueError:
        return default


class RetryPolicy(msgspec.Struct, frozen=True):
    """At most ``max_retries`` further tries, the first after ``base_ms`` milliseconds, doubling each time."""

    max_retries: int
    base_ms: int

    @classmethod
    def from_env(cls) -> RetryPolicy:
        """NETWORK_RETRY_MAX (2) and NETWORK_RETRY_BASE_MS (800)."""
        return cls(env_int("NETWORK_RETRY_MAX", 2), env_int("NETWORK_RETRY_BASE_MS", 800))

    def wait_ms(self, attempt: int) -> int:
        """The wait before try number ``attempt`` (from 1), in milliseconds."""
        return int(self.base_ms * 2 ** (attempt - 1))


def is_transient(error: BaseException) -> bool:
    """Whether the network, and not the request, is to blame. 429 and 5xx are retried by the client itself."""
    if isinstance(error, (NetworkError, StreamError)):
        return error.retriable
    return isinstance(error, (ConnectionError, TimeoutError))


def is_retriable(error: BaseException) -> bool:
    """Whether ``engine.retry()`` may help."""
    return error.retriable if isinstance(error, ProviderError) else is_transient(error)
