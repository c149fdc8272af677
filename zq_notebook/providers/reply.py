"""One streamed reply, from an open HTTP response to chunks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from zq_notebook.engine.messages import StreamChunk
from zq_notebook.errors import StreamError
from zq_notebook.providers.audit import AuditRecord
from zq_notebook.providers.failures import Server, network_error
from zq_notebook.providers.guard import ReadGuard
from zq_notebook.providers.wire import Decoder

if TYPE_CHECKING:
    import httpx2

_DRAIN_SECONDS = 0.1  # how long the end of a finished reply is waited for, to keep the connection


class Reply:
    """Reads a response until the model has finished, and says in our own errors what went wrong."""

    def __init__(
        self,
        response: httpx2.Response,
        decoder: Decoder,
        server: Server,
        guard: ReadGuard,
        *,
        idle: float | None,
        record: AuditRecord | None = None,
    ) -> None:
        self.record = record
        self._response = response
        self._decoder = decoder
        self._server = server
        self._guard = guard
        self._idle = idle
        self._bytes: AsyncIterator[bytes] = (
            response.aiter_bytes() if "content-encoding" in response.headers else response.aiter_raw()
        )
        self._read = self._bytes.__anext__
        self._finished = False

    async def read(self) -> list[StreamChunk]:
        """The next chunks, as many as one read from the network brought; none once the reply is complete.

        Raises StreamError when the stream is cut, silent or unreadable, ApiStatusError for an error inside it,
        StreamStopped when the turn is stopped.
        """
        import httpx2

        if self._finished:
            return []
        if not self._is_stream():
            return await self._read_whole()
        while True:
            try:
                data = await self._guard.wait(self._read, self._idle)
            except StopAsyncIteration:
                return [*self._decoder.finish_feed(), self._last()]
            except (httpx2.HTTPError, OSError) as error:
                return [self._last_after(error)]
            chunks = self._decoder.feed(data)
            if self._decoder.done:
                chunks.append(self._last())
            if chunks:
                return chunks

    async def close(self, failure: BaseException | None) -> None:
        """Close the response, at once when the reply is incomplete, and finish the audit record."""
        try:
            if self._finished and failure is None and not self._response.is_closed:
                await self._drain()
        finally:
            await self._response.aclose()
            if self.record is not None:
                await self.record.finish(failure)

    def _last(self) -> StreamChunk:
        last = self._decoder.finish()
        self._finished = True
        return last

    def _last_after(self, error: Exception) -> StreamChunk:
        """A connection lost after the model had finished has cost nothing."""
        try:
            return self._last()
        except StreamError:
            raise network_error(error, self._server, in_stream=True) from error

    def _is_stream(self) -> bool:
        kind = self._response.headers.get("content-type", "").lower()
        return not kind.startswith(("application/json", "text/html"))

    async def _read_whole(self) -> list[StreamChunk]:
        """For a server that answers in one piece although a stream was asked for."""
        body = await self._guard.wait(self._response.aread, self._idle)
        if not body.lstrip().startswith(b"{"):
            kind = self._response.headers.get("content-type")
            raise StreamError(
                f"{self._server.host} answered with {kind}, which is no model's answer. Check OPENAI_BASE_URL: it is "
                "the address of the API, which often ends in /v1, not of a web page.",
                retriable=False,
            )
        return [*self._decoder.feed_whole(body), self._last()]

    async def _drain(self) -> None:
        """Read to the very end, where it is near, so that the connection can serve the next request."""
        import httpx2

        try:
            while True:
                await self._guard.wait(self._read, _DRAIN_SECONDS)
        except (StopAsyncIteration, StreamError, httpx2.HTTPError, OSError):
            return
