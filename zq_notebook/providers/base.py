"""The seam between the engine and a model, in one place for whoever writes a provider (Manual §10.2).

A provider is anything with ``stream`` and ``chat``; :class:`ScriptedProvider` in ``scripted.py`` is the smallest
complete example.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zq_notebook.engine.messages import Message, StreamChunk, TokenUsage, ToolCall
from zq_notebook.engine.ports import ProviderClient, StreamOptions

__all__ = [
    "PROVIDER_ITEMS",
    "Message",
    "ProviderClient",
    "StreamChunk",
    "StreamOptions",
    "TokenUsage",
    "ToolCall",
    "text_of",
]

PROVIDER_ITEMS = "provider_items"
"""The key, in ``StreamChunk.extra`` and then in the assistant message, of what only the provider understands."""


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, whether its content is a string or a list of parts; pictures are left out."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        return ""
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))
