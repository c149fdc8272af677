"""How many tokens a request has: what the server reported last, and an estimate of what changed since (Manual §14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from zq_notebook.engine.messages import Message, TokenUsage

BYTES_PER_TOKEN = 4
MESSAGE_TOKENS = 4
CALL_TOKENS = 8
# What a picture costs depends on its size and the model; most take between 700 and 1600 tokens.
PICTURE_TOKENS = 1000

_KEPT = "~tokens"
_NOT_SENT = frozenset({"role", "name", "content", "tool_calls", "tool_call_id", "attachments"})


def text_tokens(text: str) -> int:
    """About how many tokens ``text`` has: its UTF-8 bytes in fours, which also suits scripts without spaces."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // BYTES_PER_TOKEN)


def clip_tokens(text: str, limit: int) -> str:
    """The beginning of ``text`` in about ``limit`` tokens."""
    tokens = text_tokens(text)
    return text if tokens <= limit else text[: len(text) * limit // tokens].rstrip() + "…"


def message_tokens(message: Mapping[str, Any]) -> int:
    """About how many tokens one message has; counted once for a :class:`Message` that does not change."""
    if not isinstance(message, Message):
        return _count(message)
    kept = message.encoded.get(_KEPT)
    if kept is None:
        kept = message.encoded[_KEPT] = _count(message)
    return int(kept)


def messages_tokens(messages: Iterable[Mapping[str, Any]]) -> int:
    """The sum of :func:`message_tokens`."""
    total = 0
    for message in messages:
        # Before every request the whole history comes by here, nearly all of it counted already.
        try:
            total += message.encoded[_KEPT]  # type: ignore[attr-defined]
        except (AttributeError, KeyError):
            total += message_tokens(message)
    return total


def content_tokens(content: object) -> int:
    """About how many tokens a message's content has; everything that is not text counts as a picture."""
    if isinstance(content, str):
        return text_tokens(content)
    if not isinstance(content, (list, tuple)):
        return 0
    return sum(text_tokens(str(part.get("text") or "")) if _is_text(part) else PICTURE_TOKENS for part in content)


def json_tokens(value: object) -> int:
    """About how many tokens a value has when it is written as JSON."""
    try:
        return -(-len(msgspec.json.encode(value, enc_hook=str)) // BYTES_PER_TOKEN)
    except (UnicodeEncodeError, TypeError):
        return text_tokens(str(value))


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"


def _count(message: Mapping[str, Any]) -> int:
    total = MESSAGE_TOKENS + content_tokens(message.get("content"))
    for call in message.get("tool_calls") or ():
        function = call.get("function") or call
        total += CALL_TOKENS + text_tokens(str(function.get("name") or ""))
        arguments = function.get("arguments") or ""
        total += text_tokens(arguments) if isinstance(arguments, str) else json_tokens(arguments)
    # What a provider keeps with its reply (reasoning items) goes back to the server as well.
    return total + sum(json_tokens(message[key]) for key in message if key not in _NOT_SENT)


class Count(msgspec.Struct, frozen=True):
    """The tokens of a request: all of it, and of that the part that compaction cannot change.

    ``estimated`` says that no server has reported anything to go by.
    """

    total: int
    fixed: int
    estimated: bool


class TokenMeter:
    """Turns estimates into counts, by what the server said the last request had.

    The history is measured in estimated tokens, in two parts: the fixed one (system prompt and tools) and the
    conversation. A report says how many tokens these really were.
    """

    def __init__(self) -> None:
        self._reported = 0
        self._fixed = 0
        self._conversation = 0

    def report(self, tokens: int, fixed: int, conversation: int) -> None:
        """The server counted ``tokens`` where the estimates were ``fixed`` and ``conversation``."""
        self._reported, self._fixed, self._conversation = tokens, fixed, conversation

    def count(self, fixed: int, conversation: int) -> Count:
        """The tokens of a request whose parts are estimated at ``fixed`` and ``conversation``."""
        estimate = self._fixed + self._conversation
        if not self._reported or not estimate:
            return Count(fixed + conversation, fixed, True)
        ratio = self._reported / estimate
        # Prompt and tools are plain text, estimated well enough; a count far above comes from the conversation.
        fixed_scale = min(ratio, 2.0)
        fixed_tokens = int(fixed * fixed_scale)
        rest = self._reported - self._fixed * fixed_scale
        grown = conversation - self._conversation
        if grown >= 0:
            rest += grown * min(max(ratio, 0.8), 2.0)
        else:
            rest = rest * conversation / self._conversation
        return Count(fixed_tokens + int(rest), fixed_tokens, False)


def tokens_after(usage: TokenUsage, keeps_reasoning: bool) -> int:
    """How many tokens the history has once the reply that ``usage`` belongs to is part of it.

    Reasoning is not sent back unless the provider keeps it with the reply.
    """
    replied = usage.completion_tokens - (0 if keeps_reasoning else usage.reasoning_tokens)
    return usage.prompt_tokens + max(replied, 0)


class ToolTokens:
    """The estimate for the tool schemas, made once for as long as the table hands out the same list."""

    def __init__(self) -> None:
        self._tools: Sequence[Mapping[str, Any]] = ()
        self._number = 0
        self._tokens = 0

    def count(self, tools: Sequence[Mapping[str, Any]]) -> int:
        """About how many tokens ``tools`` have."""
        if tools is not self._tools or len(tools) != self._number:
            self._tools, self._number = tools, len(tools)
            self._tokens = json_tokens(list(tools)) if tools else 0
        return self._tokens
