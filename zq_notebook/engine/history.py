"""The invariant of a history, and what keeps it (design: each call has exactly one result, in order)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import msgspec

from zq_notebook.engine.messages import Message, ToolCall
from zq_notebook.errors import UsageError
from zq_notebook.text.unicode import well_formed_value
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
    pending = pending_calls(messages)
    if pending:
        messages.extend(Message(role="tool", tool_call_id=call.id, content=text) for call in pending)
        sort_last_results(messages)


def sort_last_results(messages: list[Message]) -> None:
    """Put the results at the end of the history into the order of their calls."""
    start = len(messages)
    while start and messages[start - 1].get("role") == "tool":
        start -= 1
    calls = (messages[start - 1].get("tool_calls") or ()) if start else ()
    order = {call["id"]: place for place, call in enumerate(calls)}
    messages[start:] = sorted(messages[start:], key=lambda message: order.get(message.get("tool_call_id"), len(order)))


def restored(messages: Iterable[Mapping[str, Any]], missing: str) -> list[Message]:
    """A given history as one that is valid; the caller's dictionaries stay untouched.

    Results that nobody called are left out, results in the wrong order are put right, and a call without one is
    answered with ``missing``; only the last calls may still wait for theirs (Manual §12.4). Raises
    :class:`UsageError` for something that is no chat-style message.
    """
    given = [_checked(message, place) for place, message in enumerate(messages)]
    result: list[Message] = []
    place = 0
    while place < len(given):
        message = given[place]
        place += 1
        if message["role"] == "tool":
            continue
        result.append(message)
        start = place
        while place < len(given) and given[place]["role"] == "tool":
            place += 1
        if message.get("tool_calls"):
            result.extend(_answers(message, given[start:place], None if place == len(given) else missing))
    return result


def _checked(message: object, place: int) -> Message:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise UsageError(
            f"messages[{place}] is not a message. Each one is a dictionary with a role (system, user, assistant or "
            "tool) and content, as engine.messages has them."
        )
    return Message(message)


def _answers(message: Message, results: list[Message], missing: str | None) -> list[Message]:
    """One result for each call of ``message``, in its order, ``missing`` (if given) for one that is not there.

    Ids that occur twice in it are made unique.
    """
    calls = [ToolCall.of(call) for call in message["tool_calls"]]
    named = unique_ids(calls, frozenset())
    if [call.id for call in named] != [call.get("id") for call in message["tool_calls"]]:
        message["tool_calls"] = [call.to_message() for call in named]
    answers: list[Message] = []
    for old, new in zip(calls, named, strict=True):
        found = next((r for r in results if str(r.get("tool_call_id") or "") == old.id), None)
        if found is not None:
            results.remove(found)
            answers.append(Message({**found, "tool_call_id": new.id}))
        elif missing is not None:
            answers.append(Message(role="tool", tool_call_id=new.id, content=missing))
    return answers


def call_ids(messages: Iterable[Mapping[str, Any]]) -> set[str]:
    """The ids of all calls in a history."""
    return {call["id"] for message in messages for call in message.get("tool_calls") or ()}


def unique_ids(calls: Sequence[ToolCall], taken: Set[str]) -> list[ToolCall]:
    """The calls with an id each that is not ``taken``: one that is missing or was used before is replaced.

    Some servers number the calls of each reply from zero again; events and results could then not be told apart.
    """
    seen: set[str] = set()
    result: list[ToolCall] = []
    for call in calls:
        # Counted on from all ids there are, so that a server without ids does not make this a search.
        call_id, number = call.id, len(taken) + len(seen)
        while not call_id or call_id in seen or call_id in taken:
            number += 1
            call_id = f"{call.id or 'call'}_{number}"
        seen.add(call_id)
        result.append(call if call_id == call.id else msgspec.structs.replace(call, id=call_id))
    return result


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


def strip_inline_data(messages: list[Message], removed: str) -> None:
    """Take base64 out of the history: it was for the turn that brought it (Manual §13).

    ``removed``, with their ``{count}``, is what stands in its place.
    """
    for message in messages:
        content = message.get("content")
        if not isinstance(content, list):
            continue
        kept = [part for part in content if not _is_inline(part)]
        gone = len(content) - len(kept)
        if not gone:
            continue
        kept.append({"type": "text", "text": removed.format(count=gone)})
        only_text = all(part.get("type") == "text" for part in kept)
        message["content"] = "\n".join(part["text"] for part in kept) if only_text else kept


def _is_inline(part: Mapping[str, Any]) -> bool:
    if part.get("type") != "image_url":
        return False
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, Mapping) else image
    return isinstance(url, str) and url.startswith("data:")


def parse_arguments(arguments: str) -> dict[str, Any] | None:
    """The arguments of a call as a dictionary, ``None`` when they are not a JSON object; empty text means none."""
    if not arguments.strip():
        return {}
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        try:
            # The standard library also takes lone surrogates, which models write when they cut an emoji.
            value = well_formed_value(json.loads(arguments))
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None
