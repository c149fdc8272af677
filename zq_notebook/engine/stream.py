"""Opening and closing a provider's stream, however the provider is written."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Mapping, Sequence
from typing import Any

from zq_notebook.engine.messages import StreamChunk
from zq_notebook.engine.ports import ProviderClient, StreamOptions
from zq_notebook.text import logs

logger = logs.logger("zq_notebook.engine")


async def open_stream(
    provider: ProviderClient,
    model: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]],
    opts: StreamOptions,
) -> AsyncIterable[StreamChunk]:
    """The chunks of one reply; ``stream`` may be an async generator or a coroutine function that returns one."""
    stream = provider.stream(model, messages, tools, opts)
    return await stream if inspect.isawaitable(stream) else stream


async def close_stream(stream: object) -> None:
    """End a stream that may be in the middle; what that raises is of no use to anybody any more."""
    close = getattr(stream, "aclose", None)
    if close is None:
        return
    try:
        await close()
    except Exception:
        logger.warning("the model's stream could not be closed", exc_info=True)
