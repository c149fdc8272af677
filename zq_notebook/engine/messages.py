"""What goes to the model and what comes back, free of any one provider's wire format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec


class Message(dict[str, Any]):
    """One chat-style message (``role``, ``content``, ``tool_calls``, ``tool_call_id``).

    A dictionary in every way. ``encoded`` is a place for providers to keep the message's encoded form by wire format,
    so that a long history is encoded once; changing a key of the message empties it. Replace nested values rather than
    changing them in place.
    """

    __slots__ = ("encoded",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.encoded: dict[str, Any] = {}

    def __setitem__(self, key: str, value: Any) -> None:
        self.encoded.clear()
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self.encoded.clear()
        super().__delitem__(key)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """As ``dict.update``."""
        self.encoded.clear()
        super().update(*args, **kwargs)

    def pop(self, *args: Any) -> Any:
        """As ``dict.pop``."""
        self.encoded.clear()
        return super().pop(*args)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """As ``dict.setdefault``."""
        self.encoded.clear()
        return super().setdefault(key, default)

    def popitem(self) -> tuple[str, Any]:
        """As ``dict.popitem``."""
        self.encoded.clear()
        return super().popitem()

    def clear(self) -> None:
        """As ``dict.clear``."""
        self.encoded.clear()
        super().clear()

    def __ior__(self, other: Any) -> Self:  # type: ignore[override,misc]
        self.encoded.clear()
        return super().__ior__(other)

    def __reduce__(self) -> tuple[type[Message], tuple[dict[str, Any]]]:
        return (Message, (dict(self),))


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, whether its content is a string or a list of parts; pictures are left out."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        return ""
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))


class ToolCall(msgspec.Struct, frozen=True):
    """A call the model wants made; ``arguments`` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str

    def to_message(self) -> dict[str, Any]:
        """The call as it stands in a chat-style assistant message."""
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": self.arguments}}

    @classmethod
    def of(cls, call: ToolCall | Mapping[str, Any]) -> ToolCall:
        """A call from either form; arguments given as an object are written as JSON."""
        if isinstance(call, ToolCall):
            return call
        function = call.get("function", call)
        arguments = function.get("arguments") or "{}"
        if not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()
        return cls(id=str(call.get("id") or ""), name=str(function.get("name") or ""), arguments=arguments)


class TokenUsage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one request. ``prompt_tokens`` includes ``cached_tokens``; ``completion_tokens`` includes reasoning."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*(getattr(self, f) + getattr(other, f) for f in self.__struct_fields__))

    def to_dict(self) -> dict[str, int]:
        """The counts as a dictionary; cached and reasoning tokens only where there are some."""
        counts = {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.total_tokens,
        }
        if self.cached_tokens:
            counts["cached_tokens"] = self.cached_tokens
        if self.reasoning_tokens:
            counts["reasoning_tokens"] = self.reasoning_tokens
        return counts


class StreamChunk(msgspec.Struct, frozen=True):
    """One step of a streamed reply (Manual §10.2).

    Only the last chunk carries the complete ``tool_calls``; the last chunk must carry tool calls or a
    ``finish_reason``, otherwise the stream counts as broken. ``extra`` holds what the provider wants back with the
    assistant message in later requests (reasoning items of the Responses API) and is stored in the message as it is.
    """

    content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCall] | None = None
    usage: TokenUsage | None = None
    finish_reason: str | None = None
    extra: Mapping[str, Any] | None = None
