"""The Responses API: how requests are written. ``responses_stream.py`` reads its streams."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zq_notebook.engine.messages import ToolCall
from zq_notebook.providers.base import PROVIDER_ITEMS, text_of
from zq_notebook.providers.failures import Server
from zq_notebook.providers.responses_stream import ResponsesDecoder
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

_KEY = "responses"
_LEAST_OUTPUT_TOKENS = 16
# OpenAI's own models that do not reason refuse to be asked for encrypted reasoning.
_NOT_REASONING = re.compile(r"(?:^|/)(?:gpt-3|gpt-4|chatgpt-|gpt-5[\w.\-]*-chat)", re.IGNORECASE)
_REASONING = re.compile(r"(?:^|/)(?:o[1-9](?:-|$)|gpt-(?:[5-9]|\d\d)|codex)", re.IGNORECASE)


class ResponsesWire:
    """Requests to ``/responses``: nothing is stored on the server, the history comes with every request."""

    name = "responses"
    path = "/responses"
    optional_fields = ("reasoning.summary", "reasoning.encrypted_content", "include")

    def body(self, ask: Ask) -> bytes:
        """The request's JSON."""
        messages = ask.messages
        before: dict[str, Any] = {"model": ask.model}
        if messages and messages[0].get("role") in ("system", "developer"):
            before["instructions"] = text_of(messages[0])
            messages = messages[1:]
        after: dict[str, Any] = {}
        tools = _tools(ask)
        if tools:
            after["tools"] = tools
        after["stream"] = True
        after["store"] = False
        if _wants_encrypted_reasoning(ask):
            after["include"] = ["reasoning.encrypted_content"]
        reasoning = _reasoning(ask)
        if reasoning:
            after["reasoning"] = reasoning
        if ask.max_tokens is not None:
            after["max_output_tokens"] = max(ask.max_tokens, _LEAST_OUTPUT_TOKENS)
        after.update({name: ask.options[name] for name in ("temperature", "top_p") if name in ask.options})
        return join_body(before, "input", _encoded_items(messages, ask), after)

    def decoder(self, server: Server) -> ResponsesDecoder:
        """A reader for the reply."""
        return ResponsesDecoder(server)


def _tools(ask: Ask) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = []
    for tool in ask.tools:
        function = function_of(tool)
        if ask.deepseek and function.get("name") == "web_search":
            continue
        # This API takes schemas as strict unless told otherwise, and then changes them.
        tools.append({"type": "function", "strict": False, **{k: v for k, v in function.items() if k != "type"}})
    if ask.deepseek:
        tools.append({"type": "web_search"})
    return tools


def _wants_encrypted_reasoning(ask: Ask) -> bool:
    if ask.refused & {"include", "reasoning.encrypted_content"}:
        return False
    return bool(ask.effort) or not _NOT_REASONING.search(ask.model)


def _reasoning(ask: Ask) -> dict[str, str]:
    """Effort as it was asked for; a summary from the models that are known to write one."""
    if ask.deepseek:
        return {}
    reasoning = {"effort": ask.effort} if ask.effort else {}
    knows_summaries = _REASONING.search(ask.model) and not _NOT_REASONING.search(ask.model)
    if (ask.effort or knows_summaries) and "reasoning.summary" not in ask.refused:
        reasoning["summary"] = "auto"
    return reasoning


def _encoded_items(messages: Sequence[Mapping[str, Any]], ask: Ask) -> Iterator[bytes]:
    """The history as items, each message encoded once."""
    model = ask.model
    encoded_form = encoded_blind if ask.blind else encoded_once
    # Encrypted reasoning is for the model that wrote it: kept apart by model.
    key_with_reasoning = f"{_KEY}/{model}"

    def encode_with_reasoning(message: Mapping[str, Any]) -> bytes:
        return _joined(_replayed(message, model) or _items(message))

    for message in messages:
        if PROVIDER_ITEMS in message:
            encoded = encoded_once(message, key_with_reasoning, encode_with_reasoning)
        else:
            encoded = encoded_form(message, _KEY, _encode_message)
        if encoded:
            yield encoded


def _encode_message(message: Mapping[str, Any]) -> bytes:
    return _joined(_items(message))


def _joined(items: list[dict[str, Any]]) -> bytes:
    return encode(items)[1:-1]


def _items(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The items that one message stands for."""
    role = message.get("role")
    content = message.get("content")
    if role == "tool":
        output = content if isinstance(content, str) else _parts(content)
        return [{"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": output}]
    if role == "assistant":
        text = text_of(message)
        calls = [_call_item(ToolCall.of(call)) for call in message.get("tool_calls") or ()]
        said: list[dict[str, Any]] = [{"type": "message", "role": "assistant", "content": text}] if text else []
        return said + calls
    sent = _parts(content) if role == "user" and not isinstance(content, str) else text_of(message)
    return [{"type": "message", "role": role, "content": sent}]


def _call_item(call: ToolCall, item_id: str | None = None) -> dict[str, Any]:
    item = {"id": item_id} if item_id else {}
    arguments = sound_arguments(call.arguments)
    return {"type": "function_call", **item, "call_id": call.id, "name": call.name, "arguments": arguments}


def _parts(content: Any) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    for part in parts_of(content):
        kind = part.get("type")
        if kind == "text":
            sent.append({"type": "input_text", "text": part.get("text") or ""})
        elif kind == "image_url":
            image = image_of(part)
            sent.append({"type": "input_image", "image_url": image.get("url"), "detail": image.get("detail", "auto")})
        elif kind == "file":
            sent.append({"type": "input_file", **(part.get("file") or {})})
    return sent


def _replayed(message: Mapping[str, Any], model: str) -> list[dict[str, Any]] | None:
    """An assistant message with its reasoning, item by item as the model wrote it.

    ``None`` when the message no longer is what the model wrote, or another model is asked: then the reasoning stays
    away, since it is never sent without what followed it.
    """
    kept = message.get(PROVIDER_ITEMS)
    if not isinstance(kept, Mapping) or kept.get("model") != model or not kept.get("items"):
        return None
    calls = {call.id: call for call in map(ToolCall.of, message.get("tool_calls") or ())}
    text = text_of(message)
    markers: list[Mapping[str, Any]] = list(kept["items"])
    if {m.get("call_id") for m in markers if m.get("type") == "function_call"} != set(calls):
        return None
    if sum(m.get("chars", 0) for m in markers if m.get("type") == "message") != len(text):
        return None
    items: list[dict[str, Any]] = []
    for marker in markers:
        if marker.get("type") == "function_call":
            items.append(_call_item(calls[marker["call_id"]], marker.get("id")))
        elif marker.get("type") == "message":
            said, text = text[: marker["chars"]], text[marker["chars"] :]
            items.append(_said_item(said, marker))
        else:
            items.append(dict(marker))
    while items and items[-1].get("type") == "reasoning":
        items.pop()
    return items or None


def _said_item(text: str, marker: Mapping[str, Any]) -> dict[str, Any]:
    item = {"id": marker["id"], "status": "completed"} if marker.get("id") else {}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    phase = {"phase": marker["phase"]} if marker.get("phase") else {}
    return {"type": "message", **item, "role": "assistant", **phase, "content": content}
