"""What the two wire formats have in common: the question, the shape of a decoder, and encoded JSON put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from zq_notebook.engine.messages import Message, StreamChunk
from zq_notebook.providers.capabilities import supports_images
from zq_notebook.providers.failures import Server
from zq_notebook.text.unicode import well_formed_value

T = TypeVar("T")

PICTURE_NOT_SHOWN = "[image not shown: this model cannot see pictures]"


class Ask(msgspec.Struct, kw_only=True):
    """One request, before it takes the form of an API.

    ``deepseek`` is set for DeepSeek's models and servers; ``official`` for OpenAI's own servers; ``refused`` names the
    optional fields that this model's server did not accept earlier.
    """

    model: str
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    effort: str | None = None
    deepseek: bool = False
    official: bool = False
    refused: frozenset[str] = frozenset()
    max_tokens: int | None = None
    options: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @property
    def blind(self) -> bool:
        """Whether the model is known not to take pictures; many servers refuse the whole request over one."""
        return not supports_images(self.model)


class Decoder(Protocol):
    """Reads one streamed reply."""

    done: bool

    def feed(self, data: bytes) -> list[StreamChunk]:
        """The deltas in these bytes; raises a ProviderError for an error in the stream."""
        ...

    def finish_feed(self) -> list[StreamChunk]:
        """The deltas in what is left when the connection ends."""
        ...

    def feed_whole(self, body: bytes) -> list[StreamChunk]:
        """A reply that came in one piece although a stream was asked for."""
        ...

    def finish(self) -> StreamChunk:
        """The last chunk, once the stream has ended; raises StreamError when it ended too early."""
        ...


class Wire(Protocol):
    """One API: where requests go, how they are written, how replies are read."""

    @property
    def name(self) -> str:
        """``responses`` or ``chat``."""
        ...

    @property
    def path(self) -> str:
        """The endpoint, relative to the base URL."""
        ...

    @property
    def optional_fields(self) -> tuple[str, ...]:
        """Fields that a request can do without when a server complains about them."""
        ...

    def body(self, ask: Ask) -> bytes:
        """The request's JSON."""
        ...

    def decoder(self, server: Server) -> Decoder:
        """A reader for the reply."""
        ...


_encoder = msgspec.json.Encoder()


def encode(value: Any) -> bytes:
    """``value`` as JSON; lone surrogates, which JSON cannot carry, are replaced."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(well_formed_value(value))


def encoded_once(message: Mapping[str, Any], key: str, encode_message: Callable[[Mapping[str, Any]], T]) -> T:
    """The encoded form of ``message``: kept with a :class:`Message`, made anew for a plain dictionary."""
    if isinstance(message, Message):
        kept: T | None = message.encoded.get(key)
        if kept is None:
            kept = message.encoded[key] = encode_message(message)
        return kept
    return encode_message(message)


def encoded_blind(message: Mapping[str, Any], key: str, encode_message: Callable[[Mapping[str, Any]], T]) -> T:
    """As :func:`encoded_once`, for a model that cannot see; messages that may hold pictures are kept apart for it."""
    if message.get("role") not in ("user", "tool") or isinstance(message.get("content"), str):
        return encoded_once(message, key, encode_message)
    return encoded_once(message, f"{key}/blind", lambda seen: encode_message(_without_pictures(seen)))


def _without_pictures(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """``message`` with one note in place of all its pictures."""
    parts = parts_of(message.get("content"))
    pictures = [place for place, part in enumerate(parts) if part.get("type") == "image_url"]
    if not pictures:
        return message
    kept = [part for part in parts if part.get("type") != "image_url"]
    kept.insert(pictures[0], {"type": "text", "text": PICTURE_NOT_SHOWN})
    return {**message, "content": kept}


def join_body(before: Mapping[str, Any], list_name: str, items: Iterable[bytes], after: Mapping[str, Any]) -> bytes:
    """A JSON object from its plain fields and one list whose items are encoded already."""
    head = encode(before)[:-1] + (b"," if before else b"")
    tail = b"," + encode(after)[1:] if after else b"}"
    return b"%b%b:[%b]%b" % (head, encode(list_name), b",".join(items), tail)


def function_of(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """The function in a tool schema, given as ``{"type": "function", "function": {…}}`` or as the function itself."""
    inner = tool.get("function")
    return inner if isinstance(inner, Mapping) else tool


def parts_of(content: Any) -> list[Mapping[str, Any]]:
    """Message content as a list of parts."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, (list, tuple)):
        return []
    return [{"type": "text", "text": p} if isinstance(p, str) else p for p in content if isinstance(p, (str, Mapping))]


def image_of(part: Mapping[str, Any]) -> dict[str, Any]:
    """``url`` and ``detail`` of an ``image_url`` part, in either of its spellings."""
    image = part.get("image_url")
    if not isinstance(image, Mapping):
        image = {"url": image}
    return {key: str(image[key]) for key in ("url", "detail") if image.get(key)}


def sound_arguments(arguments: str) -> str:
    """Arguments as they may stand in a history.

    Many servers parse the arguments of earlier calls, and refuse the whole conversation for ever when the model once
    wrote something that is not JSON. Such text is sent as the one field of an object instead, and so is JSON that is
    nested too deeply to be read.
    """
    try:
        msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return encode({"invalid_arguments": arguments}).decode()
    return arguments
