"""An HTTP server whose every byte and pause is up to the test, for what well-behaved servers never do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

SSE = "text/event-stream"


@dataclass
class Answer:
    """One answer.

    body: what is sent; an ``asyncio.Event`` among the pieces is waited for.
    cut: whether the connection is dropped instead of the body being ended. The request's path decides nothing: answers
    are given in order, the last one again and again.
    """

    body: Sequence[bytes | asyncio.Event] = ()
    status: int = 200
    content_type: str = SSE
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


def json_answer(body: Any, status: int = 200, **headers: str) -> Answer:
    return Answer([json.dumps(body).encode()], status, "application/json", headers)


@dataclass
class Request:
    """What the server was sent."""

    path: str
    headers: dict[str, str]
    body: Any
    connection: int


class RawServer:
    """Answers requests one after the other; notes each, and when the client went away."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[Request] = []
        self.connections = 0
        self.arrived = asyncio.Event()
        self.disconnected = asyncio.Event()
        self.writers: set[asyncio.StreamWriter] = set()
        self.base_url = ""

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        self.connections += 1
        connection = self.connections
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                first, *rest = head.strip().split("\r\n")
                headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in rest)}
                raw = await reader.readexactly(int(headers.get("content-length", 0)))
                self.requests.append(Request(first.split()[1], headers, json.loads(raw or b"null"), connection))
                self.arrived.set()
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if not await self._send(answer, reader, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            self.disconnected.set()
        finally:
            writer.close()

    async def _send(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        fields = {"content-type": answer.content_type, "transfer-encoding": "chunked", **answer.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        if answer.body or not answer.cut:
            writer.write(f"HTTP/1.1 {answer.status} X\r\n{lines}\r\n".encode())
        for piece in answer.body:
            if isinstance(piece, asyncio.Event):
                await writer.drain()
                gone = asyncio.ensure_future(reader.read(1))
                go_on = asyncio.ensure_future(piece.wait())
                await asyncio.wait([gone, go_on], return_when=asyncio.FIRST_COMPLETED)
                if gone.done() or not go_on.done():
                    go_on.cancel()
                    self.disconnected.set()
                    return False
                gone.cancel()
                continue
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if answer.cut:
            await writer.drain()
            writer.transport.abort()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


@pytest.fixture
async def raw_server() -> AsyncIterator[RawServer]:
    """A :class:`RawServer` on loopback."""
    server = RawServer()
    async with await asyncio.start_server(server.handle, "127.0.0.1", 0) as listening:
        server.base_url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
        yield server
        for writer in server.writers:
            writer.transport.abort()
