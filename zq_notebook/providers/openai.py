"""OpenAI and every server that speaks its APIs (Manual §10).

The SDK's client does keys, addresses, timeouts, retries and errors. The hot path is ours: the history is sent as JSON
that was encoded once, and the reply is read as bytes, cut into events and decoded into small structs.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from zq_notebook.engine.messages import StreamChunk
from zq_notebook.engine.ports import StreamOptions
from zq_notebook.providers.audit import AuditLog, AuditRecord
from zq_notebook.providers.connection import Connections
from zq_notebook.providers.failures import (
    Server,
    body_of,
    network_error,
    status_error,
)
from zq_notebook.providers.fallback import ApiMemory
from zq_notebook.providers.guard import ReadGuard, StreamStopped
from zq_notebook.providers.reply import Reply
from zq_notebook.providers.settings import Settings, read_settings, reasoning_effort
from zq_notebook.providers.wire import Ask, Wire
from zq_notebook.text import redact

if TYPE_CHECKING:
    import httpx2


class OpenAIProvider:
    """A model behind the Responses API, or behind Chat Completions where a server has no Responses (Manual §10.1).

    api_key, base_url: read from OPENAI_API_KEY and OPENAI_BASE_URL at each request unless given. Servers on this
        machine or a private network need no key.
    log_dir: where to write audit files; none unless given.
    api_mode: ``"responses"`` or ``"chat"`` to use that API alone (OPENAI_FORCE_API_MODE).
    max_retries: how often the SDK repeats a request after 429 or 5xx (OPENAI_MAX_RETRIES, 2).
    timeout_ms: how long to wait for the answer to begin, milliseconds (OPENAI_TIMEOUT_MS, 600 000).
    stream_idle_ms: how long a stream may be silent, milliseconds; 0 for ever (OPENAI_STREAM_IDLE_MS, 300 000).
    http_client: an ``httpx2.AsyncClient`` of your own, which you close yourself.
    """

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        log_dir: str | os.PathLike[str] | None = None,
        *,
        api_mode: str | None = None,
        max_retries: int | None = None,
        timeout_ms: int | None = None,
        stream_idle_ms: int | None = None,
        http_client: httpx2.AsyncClient | None = None,
    ) -> None:
        self._api_key = api_key
        self._base_url = base_url
        self._api_mode = api_mode
        self._max_retries = max_retries
        self._timeout_ms = timeout_ms
        self._stream_idle_ms = stream_idle_ms
        self._connections = Connections(http_client)
        self._audit = AuditLog(log_dir) if log_dir is not None else None
        self._memory = ApiMemory()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # key and address, which may hold a password, stay out of tracebacks

    def settings(self) -> Settings:
        """The settings as they are now. Raises UsageError for a value in the environment that cannot be used."""
        return read_settings(
            api_key=self._api_key,
            base_url=self._base_url,
            api_mode=self._api_mode,
            max_retries=self._max_retries,
            timeout_ms=self._timeout_ms,
            stream_idle_ms=self._stream_idle_ms,
        )

    def stream(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        opts: StreamOptions,
    ) -> AsyncIterator[StreamChunk]:
        """Ask ``model``; the reply comes as deltas, then one chunk with calls, usage and finish reason.

        Ends without that chunk when ``opts.cancel`` is set. Raises, once iterated, ApiKeyMissingError,
        ApiStatusError, ContextOverflowError, NetworkError or StreamError; UsageError for settings that cannot be used.
        """
        return self._reply(opts, Ask(model=model, messages=messages, tools=tools, effort=opts.reasoning_effort))

    async def chat(
        self,
        model: str,
        messages: Sequence[Mapping[str, Any]],
        options: Mapping[str, Any] | None,
        opts: StreamOptions,
        params: Mapping[str, Any] | None = None,
    ) -> str | None:
        """One small request without tools; ``None`` when the answer is empty.

        options: ``temperature``, ``top_p``, ``reasoning_effort``. params: ``max_tokens``. Raises as :meth:`stream`.
        """
        options, params = options or {}, params or {}
        ask = Ask(
            model=model,
            messages=messages,
            effort=options.get("reasoning_effort") or opts.reasoning_effort,
            max_tokens=params.get("max_tokens", params.get("maxTokens")),
            options=options,
        )
        text = [chunk.content async for chunk in self._reply(opts, ask) if chunk.content]
        return "".join(text).strip() or None

    async def aclose(self) -> None:
        """Close the connections. The provider can be used again; it opens new ones."""
        await self._connections.aclose()

    async def _reply(self, opts: StreamOptions, ask: Ask) -> AsyncIterator[StreamChunk]:
        settings = self.settings()
        secrets = (settings.api_key,) if settings.api_key else ()
        redact.shared().add(settings.api_key)
        server = Server(settings.host, ask.model, secrets, settings.is_local)
        ask.effort = ask.effort or reasoning_effort()
        ask.deepseek = "deepseek" in f"{ask.model} {settings.base_url}".lower()
        ask.official = settings.is_official
        guard = ReadGuard(opts.cancel)
        reply: Reply | None = None
        failure: BaseException | None = None
        try:
            reply = await guard.wait(lambda: self._open(settings, ask, opts, server, guard))
            while chunks := await reply.read():
                if reply.record is not None:
                    reply.record.add(chunks)
                for chunk in chunks:
                    yield chunk
        except StreamStopped as stopped:
            failure = stopped
        except BaseException as error:
            failure = error
            raise
        finally:
            try:
                if reply is not None:
                    await reply.close(failure)
            finally:
                guard.close()

    async def _open(self, settings: Settings, ask: Ask, opts: StreamOptions, server: Server, guard: ReadGuard) -> Reply:
        """Send the request, on whichever API the server has."""
        import openai

        attempt = self._memory.attempt(settings.base_url, ask.model, settings.api_mode)
        while True:
            ask.refused = attempt.refused
            try:
                reply = await self._post(attempt.wire, settings, ask, opts, server, guard)
            except openai.APIStatusError as error:
                said = body_of(error)
                mapped = status_error(error.status_code, said, server)
                if not attempt.again(said, mapped):
                    raise attempt.error(mapped) from None
            else:
                attempt.succeeded()
                return reply

    async def _post(
        self, wire: Wire, settings: Settings, ask: Ask, opts: StreamOptions, server: Server, guard: ReadGuard
    ) -> Reply:
        """One request on one API, until its answer begins. Raises the SDK's status errors, and ours for the network."""
        import httpx2
        import openai

        client = await self._connections.client(settings)
        body = wire.body(ask)
        record: AuditRecord | None = None
        if self._audit is not None:
            url = server.clean(f"{settings.base_url.rstrip('/')}{wire.path}")
            record = await self._audit.begin(opts, wire.name, url, body, server.secrets)
        try:
            answer = await client.post(
                wire.path,
                cast_to=httpx2.Response,
                content=body,
                options={"headers": {"Accept": "text/event-stream", "Accept-Encoding": "identity"}},
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
        except BaseException as error:
            mapped = network_error(error, server) if isinstance(error, openai.APIConnectionError) else error
            if record is not None:
                await record.finish(mapped)
            if mapped is error:
                raise
            raise mapped from error
        idle = settings.stream_idle_ms / 1000 if settings.stream_idle_ms else None
        # Asked for the bare response, the SDK returns that and not its own stream, whatever its types say.
        response = cast("httpx2.Response", answer)
        return Reply(response, wire.decoder(server), server, guard, idle=idle, record=record)
