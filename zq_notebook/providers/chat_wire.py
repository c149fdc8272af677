"""The Chat Completions API: how messages are written, how its streams are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from zq_notebook.engine.messages import StreamChunk, TokenUsage, ToolCall
from zq_notebook.providers.base import PROVIDER_ITEMS, text_of
from zq_notebook.providers.failures import Server, ended_early, stream_failure
from zq_notebook.providers.sse import HalfCharacters, SseParser, decode_event, number
from zq_notebook.providers.tool_calls import CallAssembler
from zq_notebook.providers.wire import (
    Ask,
    encode,
    encoded_blind,
    encoded_once,
    function_of,
    image_of,
    join_body,
    parts_of,
    sound_arguments,
)

_KEY = "chat"
_KEY_DEEPSEEK = "chat/deepseek"
_KNOWN_PARTS = ("input_audio", "file")


class ChatWire:
    """Requests to ``/chat/completions``."""

    name = "chat"
    path = "/chat/completions"
    optional_fields = ("stream_options",)

    def body(self, ask: Ask) -> bytes:
        """The request's JSON."""
        before: dict[str, Any] = {"model": ask.model}
        after: dict[str, Any] = {}
        if ask.tools:
            after["tools"] = [{"type": "function", "function": dict(function_of(tool))} for tool in ask.tools]
        after["stream"] = True
        if "stream_options" not in ask.refused:
            after["stream_options"] = {"include_usage": True}
        if ask.effort and not ask.deepseek:
            after["reasoning_effort"] = ask.effort
        if ask.max_tokens is not None:
            after["max_completion_tokens" if ask.official else "max_tokens"] = ask.max_tokens
        after.update({name: ask.options[name] for name in ("temperature", "top_p") if name in ask.options})
        return join_body(before, "messages", _encoded_messages(ask), after)

    def decoder(self, server: Server) -> ChatDecoder:
        """A reader for the reply."""
        return ChatDecoder(server)


def _encoded_messages(ask: Ask) -> Iterator[bytes]:
    """The history, each message encoded once; the pictures of a reply's tools follow its last tool message."""
    key = _KEY_DEEPSEEK if ask.deepseek else _KEY
    encode_one = _encode_for_deepseek if ask.deepseek else _encode_message
    encoded_form = encoded_blind if ask.blind else encoded_once
    pictures: list[bytes] = []
    for message in ask.messages:
        if pictures and message.get("role") != "tool":
            yield _pictures_message(pictures)
            pictures = []
        encoded = encoded_form(message, key, encode_one)
        if isinstance(encoded, bytes):
            yield encoded
        else:
            yield encoded[0]
            pictures.append(encoded[1])
    if pictures:
        yield _pictures_message(pictures)


def _pictures_message(pictures: list[bytes]) -> bytes:
    return b'{"role":"user","content":[%b]}' % b",".join(pictures)


def _encode_message(message: Mapping[str, Any], reasoning: bool = False) -> bytes | tuple[bytes, bytes]:
    """One message as JSON; for a tool message with pictures also the parts that show them."""
    role = message.get("role")
    if role == "tool":
        return _encode_tool_message(message)
    if role == "assistant":
        return encode(_assistant(message, reasoning))
    content = message.get("content")
    sent: dict[str, Any] = {"role": role}
    if isinstance(message.get("name"), str):
        sent["name"] = message["name"]
    sent["content"] = _parts(content) if role == "user" and not isinstance(content, str) else text_of(message)
    return encode(sent)


def _encode_for_deepseek(message: Mapping[str, Any]) -> bytes | tuple[bytes, bytes]:
    return _encode_message(message, reasoning=True)


def _assistant(message: Mapping[str, Any], reasoning: bool) -> dict[str, Any]:
    calls = [ToolCall.of(call) for call in message.get("tool_calls") or ()]
    text = text_of(message)
    sent: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None}
    if calls:
        sent["tool_calls"] = [ToolCall(c.id, c.name, sound_arguments(c.arguments)).to_message() for c in calls]
    kept = message.get(PROVIDER_ITEMS)
    if reasoning and calls and isinstance(kept, Mapping) and kept.get("reasoning_content"):
        # DeepSeek refuses to go on after a call that it thought about, when the thought does not come back.
        sent["reasoning_content"] = kept["reasoning_content"]
    return sent


def _parts(content: Any) -> list[dict[str, Any]]:
    """The parts of a user message that this API knows, without keys that it does not."""
    sent: list[dict[str, Any]] = []
    for part in parts_of(content):
        kind = part.get("type")
        if kind == "text":
            sent.append({"type": "text", "text": part.get("text") or ""})
        elif kind == "image_url":
            sent.append({"type": "image_url", "image_url": image_of(part)})
        elif kind in _KNOWN_PARTS:
            sent.append({"type": kind, kind: part.get(kind)})
    return sent


def _encode_tool_message(message: Mapping[str, Any]) -> bytes | tuple[bytes, bytes]:
    call_id = message.get("tool_call_id")
    pictures = [part for part in _parts(message.get("content")) if part["type"] == "image_url"]
    text = text_of(message)
    if pictures and not text:
        text = "The result is a picture, shown below."
    encoded = encode({"role": "tool", "tool_call_id": call_id, "content": text})
    if not pictures:
        return encoded
    note = {"type": "text", "text": f"Pictures returned by the tool call {call_id}:"}
    return encoded, encode([note, *pictures])[1:-1]


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _CallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: Any = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None
    index: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    total_tokens: Any = None
    prompt_tokens_details: dict[str, Any] | None = None
    completion_tokens_details: dict[str, Any] | None = None
    prompt_cache_hit_tokens: Any = None

    def tokens(self) -> TokenUsage:
        cached = (self.prompt_tokens_details or {}).get("cached_tokens") or self.prompt_cache_hit_tokens
        prompt, completion = number(self.prompt_tokens), number(self.completion_tokens)
        return TokenUsage(
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=number(self.total_tokens) or prompt + completion,
            cached_tokens=number(cached),
            reasoning_tokens=number((self.completion_tokens_details or {}).get("reasoning_tokens")),
        )


class _Event(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    object: str | None = None
    message: Any = None
    code: Any = None


_decoder = msgspec.json.Decoder(_Event)


class ChatDecoder:
    """Reads one streamed reply of Chat Completions."""

    def __init__(self, server: Server) -> None:
        self.done = False
        self._server = server
        self._sse = SseParser()
        self._calls = CallAssembler()
        self._halves = HalfCharacters()
        self._finish_reason: str | None = None
        self._usage: TokenUsage | None = None
        self._reasoning_content: list[str] = []

    def feed(self, data: bytes) -> list[StreamChunk]:
        """The deltas in these bytes; raises a ProviderError for an error in the stream."""
        return self._read(self._sse.feed(data))

    def finish(self) -> StreamChunk:
        """The last chunk. Raises StreamError when the stream ended without a finish reason."""
        if self._finish_reason is None:
            raise ended_early(self._server)
        calls = self._calls.calls()
        extra: dict[str, Any] | None = None
        if calls and self._reasoning_content:
            extra = {PROVIDER_ITEMS: {"reasoning_content": "".join(self._reasoning_content)}}
        return StreamChunk(tool_calls=calls or None, usage=self._usage, finish_reason=self._finish_reason, extra=extra)

    def finish_feed(self) -> list[StreamChunk]:
        """The deltas in what is left when the connection ends."""
        return self._read(self._sse.finish())

    def feed_whole(self, body: bytes) -> list[StreamChunk]:
        """A reply that a server sent in one piece although it was asked for a stream."""
        return self._read([body])

    def _read(self, payloads: list[bytes]) -> list[StreamChunk]:
        chunks: list[StreamChunk] = []
        for payload in payloads:
            if payload.startswith(b"[DONE]"):
                self.done = True
                break
            event = decode_event(_decoder, payload)
            if event.error or event.object == "error":
                raise stream_failure(event.error or {"message": event.message, "code": event.code}, self._server)
            if event.usage is not None:
                self._usage = event.usage.tokens()
            for choice in event.choices or ():
                if choice.index:
                    continue
                delta = choice.delta or choice.message
                if delta is not None:
                    self._take(delta, chunks)
                if choice.finish_reason:
                    self._finish_reason = choice.finish_reason
        return chunks

    def _take(self, delta: _Delta, chunks: list[StreamChunk]) -> None:
        thought = delta.reasoning_content
        if thought:
            self._reasoning_content.append(thought)
        elif isinstance(delta.reasoning, str):
            thought = delta.reasoning
        if thought and (text := self._halves.join(thought)):
            chunks.append(StreamChunk(reasoning=text))
        content = delta.content
        if isinstance(content, str):
            if content and (text := self._halves.join(content)):
                chunks.append(StreamChunk(content=text))
        elif content:
            chunks.extend(_chunks_of_parts(content))
        if delta.refusal:
            chunks.append(StreamChunk(content=delta.refusal))
        for call in delta.tool_calls or ():
            function = call.function or _Function()
            self._calls.add(index=call.index, id=call.id, name=function.name, arguments=function.arguments)


def _chunks_of_parts(parts: list[Any]) -> Iterator[StreamChunk]:
    """Content that comes as a list of parts, with thinking among them (Mistral)."""
    for part in parts_of(parts):
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            text = inner if isinstance(inner, str) else text_of({"content": inner})
            if text:
                yield StreamChunk(reasoning=text)
        elif isinstance(part.get("text"), str) and part["text"]:
            yield StreamChunk(content=part["text"])
