"""Making a history smaller without breaking it: where it may be cut, what may be left out (Manual §14.1).

Pure functions. A call and its result stay together; the newest part, and what the user said last, stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from zq_notebook.engine.history import parse_arguments
from zq_notebook.engine.messages import Message, ToolCall, text_of
from zq_notebook.engine.tokens import BYTES_PER_TOKEN, MESSAGE_TOKENS, content_tokens, message_tokens, text_tokens
from zq_notebook.text.truncate import clip_middle

if TYPE_CHECKING:
    from zq_notebook.languages.tables import CompactionTexts

History = Sequence[Mapping[str, Any]]

READ_TOOL = "read_file"
_LEAST_RESULT_TOKENS = 50


def head_length(messages: History) -> int:
    """How many messages at the start are the system prompt."""
    return int(bool(messages) and messages[0].get("role") in ("system", "developer"))


def tail_start(messages: History, keep_tokens: float) -> int:
    """The index from which the newest messages have at most ``keep_tokens``; never between a call and its result.

    The last message, with the calls that it answers, is always part of it.
    """
    head, total, start = head_length(messages), 0, len(messages)
    for index in range(len(messages) - 1, head - 1, -1):
        total += message_tokens(messages[index])
        if messages[index].get("role") == "tool" and index > head:
            continue
        if total > keep_tokens and start < len(messages):
            break
        start = index
    return start


class Split(msgspec.Struct, frozen=True):
    """What happens to each message: ``dropped`` go, ``kept`` (indexes too) stay, as does everything from ``cut`` on.

    ``notes`` is the index of an earlier summary among the messages before ``cut``.
    """

    head: int
    cut: int
    kept: tuple[int, ...]
    dropped: tuple[int, ...]
    notes: int | None

    def dropped_tokens(self, messages: History) -> int:
        """About how many tokens the dropped messages have."""
        return sum(message_tokens(messages[index]) for index in self.dropped)

    def remaining_tokens(self, messages: History) -> int:
        """About how many tokens of the conversation stay, without any summary."""
        return sum(message_tokens(messages[i]) for i in (*self.kept, *range(self.cut, len(messages))))


def split(messages: History, keep_tokens: float, intro: str) -> Split:
    """Decide what a summary is to replace: all but the newest ``keep_tokens`` and what the user asked last."""
    head, cut = head_length(messages), tail_start(messages, keep_tokens)
    notes = next((i for i in range(head, cut) if is_notes(messages[i], intro)), None)
    kept: list[int] = []
    total = 0
    for index in reversed(_unanswered(messages, head, intro)):
        total += message_tokens(messages[index])
        if kept and total > keep_tokens:
            break
        kept.append(index)
    kept = sorted(index for index in kept if index < cut)
    dropped = [i for i in range(head, cut) if i not in kept and i != notes]
    return Split(head=head, cut=cut, kept=tuple(kept), dropped=tuple(dropped), notes=notes)


def is_notes(message: Mapping[str, Any], intro: str) -> bool:
    """Whether a message is an earlier summary."""
    content = message.get("content")
    return message.get("role") == "user" and isinstance(content, str) and content.startswith(intro)


def said_by_user(messages: History, intro: str) -> int:
    """How many of the messages are the user's own."""
    return sum(message.get("role") == "user" and not is_notes(message, intro) for message in messages)


def _unanswered(messages: History, head: int, intro: str) -> list[int]:
    """What the user has said since the assistant last finished a turn; at least the user's last message."""
    found: list[int] = []
    for index in range(len(messages) - 1, head - 1, -1):
        message = messages[index]
        if message.get("role") == "user" and not is_notes(message, intro):
            found.append(index)
        elif found and message.get("role") == "assistant" and not message.get("tool_calls"):
            break
    return found[::-1]


def from_whole_exchange(messages: History, parts: Split) -> Split:
    """The same without a summary: where nothing stands before what is left, it begins with a message of the user."""
    if parts.notes is not None or parts.kept:
        return parts
    users = (i for i in range(parts.cut, len(messages)) if messages[i].get("role") == "user")
    start = next(users, parts.cut)
    return msgspec.structs.replace(parts, cut=start, dropped=(*parts.dropped, *range(parts.cut, start)))


def rebuilt(messages: Sequence[Message], parts: Split, notes: Message | None) -> list[Message]:
    """The history without what is dropped; without new ``notes`` an earlier summary stays."""
    if notes is None and parts.notes is not None:
        notes = messages[parts.notes]
    kept = [messages[index] for index in parts.kept]
    return [*messages[: parts.head], *([notes] if notes is not None else []), *kept, *messages[parts.cut :]]


def evictions(messages: History, cut: int, texts: CompactionTexts, *, elide: bool, dedup: bool) -> dict[int, Message]:
    """Short notes for old tool results, by index: those before ``cut``, and files that were read again later."""
    calls = _calls_by_result(messages)
    found: dict[int, Message] = {}
    read_later: set[str] = set()
    for index in range(len(messages) - 1, -1, -1):
        call = calls.get(index)
        if call is None:
            continue
        message, text = messages[index], text_of(messages[index])
        elided = texts.elided_result.format(tool=call.name)
        read = _read_key(call)
        if dedup and read is not None and read in read_later:
            note = texts.repeated_read.format(path=_path(call))
        elif elide and index < cut:
            note = elided
        else:
            note = None
        if note is not None and content_tokens(message.get("content")) > 2 * text_tokens(note):
            found[index] = Message({**message, "content": note})
        elif read is not None and text != elided and not text.startswith('{"error"'):
            read_later.add(read)
    return found


def clip_results(messages: Sequence[Message], start: int, keep_tokens: float) -> dict[int, Message]:
    """Tool results from ``start`` on, shortened in their middle so that together they have about ``keep_tokens``."""
    results = [i for i in range(start, len(messages)) if messages[i].get("role") == "tool"]
    if not results or sum(message_tokens(message) for message in messages[start:]) <= keep_tokens:
        return {}
    each = max(int(keep_tokens / len(results)) - MESSAGE_TOKENS, _LEAST_RESULT_TOKENS)
    found: dict[int, Message] = {}
    for index in results:
        text = messages[index].get("content")
        if isinstance(text, str) and text_tokens(text) > 2 * each:
            characters = len(text) * each // text_tokens(text) if not text.isascii() else each * BYTES_PER_TOKEN
            found[index] = Message({**messages[index], "content": clip_middle(text, characters)})
    return found


def saved_tokens(messages: History, replacements: Mapping[int, Message]) -> int:
    """About how many tokens ``replacements`` save."""
    return sum(message_tokens(messages[i]) - message_tokens(new) for i, new in replacements.items())


def replace(messages: list[Message], replacements: Mapping[int, Message]) -> None:
    """Put ``replacements`` into the history; the old message objects stay as they are."""
    for index, message in replacements.items():
        messages[index] = message


def _calls_by_result(messages: History) -> dict[int, ToolCall]:
    """For the index of each tool result the call that it answers; ids may be used again in a later reply."""
    calls: dict[str, ToolCall] = {}
    found: dict[int, ToolCall] = {}
    for index, message in enumerate(messages):
        for call in message.get("tool_calls") or ():
            known = ToolCall.of(call)
            calls[known.id] = known
        if message.get("role") == "tool" and (answered := calls.get(str(message.get("tool_call_id")))):
            found[index] = answered
    return found


def _read_key(call: ToolCall) -> str | None:
    """The same text for reads of the same file with the same arguments; ``None`` for other calls."""
    if call.name != READ_TOOL or (arguments := parse_arguments(call.arguments)) is None:
        return None
    return msgspec.json.encode(arguments, order="deterministic").decode()


def _path(call: ToolCall) -> str:
    return str((parse_arguments(call.arguments) or {}).get("path") or READ_TOOL)
