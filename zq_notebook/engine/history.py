"""The invariant of a history, and what keeps it (design: each call has exactly one result, in order)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from zq_notebook.engine.messages import Message, ToolCall
from zq_notebook.toolio import ToolOutput

Content = str | list[dict[str, Any]]


def problems(messages: Sequence[Mapping[str, Any]], *, allow_pending: bool = False) -> list[str]:
    """What is wrong with a history: calls without result, results without call, wrong order, ids used twice.

    With ``allow_pending`` the calls of the very last assistant message may still lack results.
    """
    found: list[str] = []
    waiting: list[str] = []
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            call_id = message.get("tool_call_id")
            if not waiting:
                found.append(f"message {index}: a result for {call_id!r}, which nobody called")
            elif call_id != waiting[0]:
                found.append(f"message {index}: a result for {call_id!r} where {waiting[0]!r} was expected")
            else:
                waiting.pop(0)
            continue
        if waiting:
            found.append(f"message {index}: calls without result: {waiting}")
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(waiting)) != len(waiting):
            found.append(f"message {index}: a call id is used twice: {waiting}")
    if waiting and not allow_pending:
        found.append(f"the last calls have no result: {waiting}")
    return found


def pending_calls(messages: Sequence[Mapping[str, Any]]) -> list[ToolCall]:
    """The calls at the end of the history that have no result yet, in the model's order."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.get("role") == "tool":
            answered.add(str(message.get("tool_call_id")))
            continue
        calls = [ToolCall.of(call) for call in message.get("tool_calls") or ()]
        return [call for call in calls if call.id not in answered]
    return []


def answer_pending(messages: list[Message], text: str) -> None:
    """Give every call that is still open the result ``text``, so that the history is valid again."""
    for call in pending_calls(messages):
        messages.append(Message(role="tool", tool_call_id=call.id, content=text))


def assistant_message(text: str, calls: Sequence[ToolCall], extra: Mapping[str, Any] | None) -> Message:
    """One reply of the model as it stands in the history."""
    message = Message(role="assistant", content=text)
    if calls:
        message["tool_calls"] = [call.to_message() for call in calls]
    if extra:
        message.update(extra)
    return message


def tool_message(call_id: str, output: ToolOutput) -> Message:
    """One tool result as it stands in the history; pictures become image parts."""
    content: Content = output.text
    if output.images:
        content = [{"type": "text", "text": output.text}, *(image_part(i.mime_type, i.data) for i in output.images)]
    return Message(role="tool", tool_call_id=call_id, content=content)


def image_part(mime_type: str, data: bytes) -> dict[str, Any]:
    """A picture as a chat-style content part."""
    import base64

    return {"type": "image_url", "image_url": {"url": f"data:{mime_type};base64,{base64.b64encode(data).decode()}"}}


def user_message(
    text: str, attachments: Sequence[Mapping[str, Any]] | None, refs: Sequence[Mapping[str, Any]] | None
) -> Message:
    """What the user said, with pictures as parts; ``refs`` (stored attachments) travel with the message."""
    message = Message(role="user", content=text)
    if attachments:
        parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        parts.extend({"type": "image_url", "image_url": {"url": a["dataUrl"]}} for a in attachments)
        message["content"] = parts
    if refs:
        message["attachments"] = [dict(ref) for ref in refs]
    return message


def strip_inline_data(messages: list[Message], start: int) -> None:
    """Take base64 out of the messages from index ``start`` on: it was for the turn that brought it (Manual §13)."""
    for message in messages[start:]:
        content = message.get("content")
        if not isinstance(content, list):
            continue
        texts = [part["text"] for part in content if part.get("type") == "text"]
        pictures = sum(part.get("type") == "image_url" for part in content)
        if pictures:
            texts.append(f"[{pictures} image{'s' if pictures > 1 else ''} shown earlier]")
            message["content"] = "\n".join(texts)


def parse_arguments(arguments: str) -> dict[str, Any] | None:
    """The arguments of a call as a dictionary, ``None`` when they are not a JSON object; empty text means none."""
    if not arguments.strip():
        return {}
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError):
        return None
    return value if isinstance(value, dict) else None
