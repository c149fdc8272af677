"""The seam between the engine and a model, in one place for whoever writes a provider (Manual §10.2).

A provider is anything with ``stream`` and ``chat``; :class:`ScriptedProvider` in ``scripted.py`` is the smallest
complete example.
"""

from __future__ import annotations

from zq_notebook.engine.messages import Message, StreamChunk, TokenUsage, ToolCall, text_of
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
