"""Reading a streamed reply of the Responses API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from zq_notebook.engine.messages import StreamChunk, TokenUsage, ToolCall
from zq_notebook.errors import StreamError
from zq_notebook.providers.base import PROVIDER_ITEMS
from zq_notebook.providers.failures import ErrorBody, Server, ended_early, stream_failure
from zq_notebook.providers.sse import HalfCharacters, SseParser, decode_event, number
from zq_notebook.providers.tool_calls import new_call_id

_REASONING_DELTAS = frozenset(
    {
        "response.reasoning_summary_text.delta",
        "response.reasoning_text.delta",
        "response.reasoning_summary.delta",
        "response.reasoning.delta",
    }
)
_FINISH_REASONS = {"max_output_tokens": "length", "max_tokens": "length"}


class _Event(msgspec.Struct):
    type: str = ""
    delta: Any = None
    item: dict[str, Any] | None = None
    output_index: int | None = None
    summary_index: int | None = None
    arguments: str | None = None
    response: dict[str, Any] | None = None
    error: Any = None
    code: Any = None
    message: Any = None
    object: str | None = None


_decoder = msgspec.json.Decoder(_Event)


class ResponsesDecoder:
    """Reads one streamed reply of the Responses API."""

    def __init__(self, server: Server) -> None:
        self.done = False
        self._server = server
        self._sse = SseParser()
        self._halves = HalfCharacters()
        self._items: dict[int, dict[str, Any]] = {}
        self._arguments: dict[int, list[str]] = {}
        self._usage: TokenUsage | None = None
        self._finish_reason: str | None = None
        self._said_something = False
        self._handlers: Mapping[str, Callable[[_Event], StreamChunk | None]] = {
            "response.refusal.delta": self._on_text,
            "response.reasoning_summary_part.added": self._on_summary_part,
            "response.output_item.added": self._on_item,
            "response.output_item.done": self._on_item,
            "response.function_call_arguments.delta": self._on_arguments,
            "response.function_call_arguments.done": self._on_arguments_done,
            "response.completed": self._on_end,
            "response.done": self._on_end,
            "response.incomplete": self._on_end,
            "response.failed": self._on_failed,
            "response.cancelled": self._on_cancelled,
            "error": self._on_error,
        }

    def feed(self, data: bytes) -> list[StreamChunk]:
        """The deltas in these bytes; raises a ProviderError for an error in the stream."""
        return self._read(self._sse.feed(data))

    def finish_feed(self) -> list[StreamChunk]:
        """The deltas in what is left when the connection ends."""
        return self._read(self._sse.finish())

    def feed_whole(self, body: bytes) -> list[StreamChunk]:
        """A reply that a server sent in one piece although it was asked for a stream."""
        event = decode_event(_decoder, body)
        if event.error or event.object != "response":
            raise stream_failure(event.error or {"message": event.message}, self._server)
        whole: dict[str, Any] = msgspec.json.decode(body)
        kind = whole.get("status") or "completed"
        return self._read([msgspec.json.encode({"type": f"response.{kind}", "response": whole})])

    def finish(self) -> StreamChunk:
        """The last chunk. Raises StreamError when the stream ended before the response did."""
        if self._finish_reason is None:
            raise ended_early(self._server)
        calls: list[ToolCall] = []
        markers: list[dict[str, Any]] = []
        for index in sorted(self._items):
            item = self._items[index]
            if item.get("type") == "function_call":
                call = self._call_of(index, item)
                calls.append(call)
                markers.append(_without_none({"type": "function_call", "call_id": call.id, "id": item.get("id")}))
            else:
                markers.extend(_marker_of(item))
        reason = self._finish_reason
        if reason == "stop" and calls:
            reason = "tool_calls"
        return StreamChunk(
            tool_calls=calls or None, usage=self._usage, finish_reason=reason, extra=self._extra(markers, calls)
        )

    def _extra(self, markers: list[dict[str, Any]], calls: list[ToolCall]) -> dict[str, Any] | None:
        """What has to come back with this message: only where there is reasoning, and something that followed it."""
        kinds = {marker["type"] for marker in markers}
        if kinds <= {"message", "function_call"} or not (calls or "message" in kinds):
            return None
        return {PROVIDER_ITEMS: {"model": self._server.model, "items": markers}}

    def _call_of(self, index: int, item: Mapping[str, Any]) -> ToolCall:
        arguments = item.get("arguments") or "".join(self._arguments.get(index, ()))
        if not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()
        return ToolCall(str(item.get("call_id") or new_call_id()), str(item.get("name") or ""), arguments or "{}")

    def _read(self, payloads: list[bytes]) -> list[StreamChunk]:
        chunks: list[StreamChunk] = []
        for payload in payloads:
            if payload.startswith(b"[DONE]"):
                self.done = True
                break
            event = decode_event(_decoder, payload)
            kind = event.type
            if kind == "response.output_text.delta":
                chunk = self._on_text(event)
            elif kind in _REASONING_DELTAS:
                text = event.delta if isinstance(event.delta, str) else ""
                chunk = StreamChunk(reasoning=self._halves.join(text)) if text else None
            elif handler := self._handlers.get(kind):
                chunk = handler(event)
            elif event.error:
                raise stream_failure(event.error, self._server)
            else:
                continue
            if chunk is not None:
                chunks.append(chunk)
        return chunks

    def _on_text(self, event: _Event) -> StreamChunk | None:
        text = self._halves.join(event.delta) if isinstance(event.delta, str) else ""
        if not text:
            return None
        self._said_something = True
        return StreamChunk(content=text)

    def _on_summary_part(self, event: _Event) -> StreamChunk | None:
        return StreamChunk(reasoning="\n\n") if event.summary_index else None

    def _on_item(self, event: _Event) -> None:
        if event.item is not None:
            self._items[self._index(event)] = event.item

    def _on_arguments(self, event: _Event) -> None:
        if isinstance(event.delta, str):
            self._arguments.setdefault(self._index(event), []).append(event.delta)

    def _on_arguments_done(self, event: _Event) -> None:
        if event.arguments:
            self._arguments[self._index(event)] = [event.arguments]

    def _index(self, event: _Event) -> int:
        """The item an event is about; servers that do not number them send them one after another."""
        if event.output_index is not None:
            return event.output_index
        if event.type == "response.output_item.added":
            return len(self._items)
        return max(self._items, default=0)

    def _on_end(self, event: _Event) -> StreamChunk | None:
        response = event.response or {}
        self.done = True
        details = response.get("incomplete_details")
        if event.type == "response.incomplete" or response.get("status") == "incomplete":
            reason = str((details or {}).get("reason") or "incomplete")
            self._finish_reason = _FINISH_REASONS.get(reason, reason)
        else:
            self._finish_reason = "stop"
        if isinstance(response.get("usage"), dict):
            self._usage = _tokens(response["usage"])
        if not self._items:
            self._items = dict(enumerate(i for i in response.get("output") or () if isinstance(i, dict)))
        text = "".join(_text_of_item(item) for item in self._items.values())
        return StreamChunk(content=text) if text and not self._said_something else None

    def _on_failed(self, event: _Event) -> None:
        response = event.response or {}
        raise stream_failure(response.get("error") or event.error or {}, self._server)

    def _on_cancelled(self, event: _Event) -> None:
        raise StreamError(f"{self._server.host} cancelled its answer. Send the request again.")

    def _on_error(self, event: _Event) -> None:
        said = event.error
        if not ErrorBody.of(said).message:
            said = {"message": event.message or "", "code": event.code}
        raise stream_failure(said, self._server)


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _text_of_item(item: Mapping[str, Any]) -> str:
    if item.get("type") != "message":
        return ""
    parts = item.get("content") or ()
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts if isinstance(part, dict))


def _marker_of(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is kept of an output item: reasoning whole, a message as a place in the text, server-side calls whole.

    Reasoning without its encrypted content means nothing to a server that stored nothing, and is left out.
    """
    kind = item.get("type")
    if kind == "message":
        length = len(_text_of_item(item))
        marker = {"type": "message", "chars": length, "id": item.get("id"), "phase": item.get("phase")}
        return [_without_none(marker)] if length else []
    if kind == "reasoning":
        if not item.get("encrypted_content"):
            return []
        kept = {key: item.get(key) for key in ("type", "id", "encrypted_content")}
        return [{**_without_none(kept), "summary": item.get("summary") or []}]
    return [dict(item)] if kind else []


def _tokens(usage: Mapping[str, Any]) -> TokenUsage:
    prompt, completion = number(usage.get("input_tokens")), number(usage.get("output_tokens"))
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=number(usage.get("total_tokens")) or prompt + completion,
        cached_tokens=number((usage.get("input_tokens_details") or {}).get("cached_tokens")),
        reasoning_tokens=number((usage.get("output_tokens_details") or {}).get("reasoning_tokens")),
    )
