"""The SDK's client, one for each event loop, closed together with its loop.

A client's connections belong to the loop that opened them. Notebooks and tests come with a new loop now and then, and
a provider outlives them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import msgspec

from zq_notebook.errors import UsageError
from zq_notebook.providers.failures import Server
from zq_notebook.providers.settings import Settings
from zq_notebook.text import redact

if TYPE_CHECKING:
    import httpx2
    import openai

_CONNECT_TIMEOUT = 10.0  # seconds
_KEEP_ALIVE = 60.0  # seconds

# At level DEBUG some of these print headers, and the SDK may print what a server said about the key.
_LOGGERS = (
    *("openai", "openai._base_client", "openai._response", "openai._legacy_response", "httpx2"),
    *(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks")),
)


class _Connection(msgspec.Struct):
    settings: Settings
    client: Any
    keeper: AsyncGenerator[None, None]


class Connections:
    """Hands out the client of the running loop. Safe to use from several threads."""

    def __init__(self, http_client: httpx2.AsyncClient | None = None) -> None:
        self._http_client = http_client
        self._lock = threading.Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, _Connection] = {}

    async def client(self, settings: Settings) -> openai.AsyncOpenAI:
        """The client for the running loop and these settings.

        Raises ApiKeyMissingError without a key, UsageError when the proxy settings cannot be used.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            for closed in [known for known in self._by_loop if known.is_closed()]:
                del self._by_loop[closed]
            known = self._by_loop.get(loop)
        if known is not None and known.settings == settings:
            client: openai.AsyncOpenAI = known.client
            return client
        if known is not None:
            await known.keeper.aclose()
        client = _make_client(settings, self._http_client)
        keeper = _close_with_loop(client, owned=self._http_client is None)
        await anext(keeper)
        with self._lock:
            self._by_loop[loop] = _Connection(settings, client, keeper)
        return client

    async def aclose(self) -> None:
        """Close every client; those of other running loops are closed there."""
        with self._lock:
            connections, self._by_loop = self._by_loop, {}
        for loop, connection in connections.items():
            if loop is asyncio.get_running_loop():
                await connection.keeper.aclose()
            elif loop.is_running():
                asyncio.run_coroutine_threadsafe(connection.keeper.aclose(), loop)


async def _close_with_loop(client: openai.AsyncOpenAI, *, owned: bool) -> AsyncGenerator[None, None]:
    """Closes ``client`` when it is closed itself: by hand, by the garbage collector, or as its loop shuts down.

    A loop that ends closes the async generators that were started on it, which is the one moment when connections
    can still be closed in order.
    """
    try:
        yield
    finally:
        if owned:
            await client.close()


def _make_client(settings: Settings, http_client: httpx2.AsyncClient | None) -> openai.AsyncOpenAI:
    import httpx2
    import openai

    redact.guard_loggers(_LOGGERS)
    key = settings.require_key()
    seconds, idle = settings.timeout_ms / 1000, settings.stream_idle_ms / 1000
    # The time until an answer begins is watched in send(); once it streams, only the idle watchdog may end it.
    read = max(seconds, idle + 1) if idle else None
    timeout = httpx2.Timeout(seconds, connect=min(seconds, _CONNECT_TIMEOUT), read=read)
    if http_client is None:
        http_client = _http_client(timeout, seconds)
    return openai.AsyncOpenAI(
        api_key=key,
        base_url=settings.base_url,
        max_retries=settings.max_retries,
        timeout=timeout,
        http_client=http_client,
    )


def _http_client(timeout: httpx2.Timeout, answer_seconds: float) -> httpx2.AsyncClient:
    import httpx2
    import openai

    class HttpClient(httpx2.AsyncClient):
        """Tells the SDK about a lost network as an error of its own, which it does not retry.

        The SDK retries what the server answers (429, 5xx); the engine retries the network, and says so
        (Manual §9.4). Both at once would triple the wait.
        """

        async def send(self, request: httpx2.Request, **kwargs: Any) -> httpx2.Response:
            try:
                async with asyncio.timeout(answer_seconds):
                    return await super().send(request, **kwargs)
            except (TimeoutError, httpx2.TimeoutException) as error:
                raise openai.APITimeoutError(request=request) from error
            except httpx2.TransportError as error:
                raise openai.APIConnectionError(request=request) from error

    limits = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=_KEEP_ALIVE)
    try:
        return HttpClient(timeout=timeout, limits=limits, follow_redirects=True)
    except (ImportError, ValueError) as error:
        said = Server(host="").clean(str(error))
        raise UsageError(
            f"The proxy settings of the environment cannot be used: {said}. Correct or unset HTTPS_PROXY, HTTP_PROXY "
            "and ALL_PROXY; SOCKS proxies are not supported here."
        ) from None
