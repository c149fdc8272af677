"""Hand-made streams, and decoders fed with them in any pieces."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from zq_notebook.engine.messages import StreamChunk
from zq_notebook.providers.chat_wire import ChatDecoder
from zq_notebook.providers.failures import Server
from zq_notebook.providers.responses_stream import ResponsesDecoder

SERVER = Server(host="model.test", model="m")


def data(*events: Any) -> bytes:
    """Events of Chat Completions; a string stands for itself."""
    return b"".join(b"data: " + (e if isinstance(e, str) else json.dumps(e)).encode() + b"\n\n" for e in events)


def named(*events: dict[str, Any]) -> bytes:
    """Events of the Responses API."""
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def pieces(stream: bytes, cuts: Iterable[int]) -> list[bytes]:
    """``stream`` cut at these places."""
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    return [stream[a:b] for a, b in itertools.pairwise(edges)]


def _decode(decoder: ChatDecoder | ResponsesDecoder, reads: Sequence[bytes]) -> list[StreamChunk]:
    chunks = [chunk for read in reads if not decoder.done for chunk in decoder.feed(read)]
    if not decoder.done:
        chunks += decoder.finish_feed()
    return [*chunks, decoder.finish()]


def decode_chat(*reads: bytes) -> list[StreamChunk]:
    return _decode(ChatDecoder(SERVER), reads)


def decode_responses(*reads: bytes) -> list[StreamChunk]:
    return _decode(ResponsesDecoder(SERVER), reads)


def content_of(chunks: Iterable[StreamChunk]) -> str:
    return "".join(chunk.content or "" for chunk in chunks)


def reasoning_of(chunks: Iterable[StreamChunk]) -> str:
    return "".join(chunk.reasoning or "" for chunk in chunks)
