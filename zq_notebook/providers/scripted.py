"""A model that says what it was told to say: for tests, demonstrations and notebooks without a key.

    provider = ScriptedProvider([
        Step("Let me look.", tool_calls=[("read_file", {"path": "a.txt"})]),
        Step("It says hello.", expect="hello"),
    ])

Everything around it is real: the engine, the tools, the approvals. A script that does not fit what happens, with a
request too many or a step left over, raises :class:`~zq_notebook.errors.ScriptError`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, Self, TypeAlias

from zq_notebook.engine.messages import StreamChunk, TokenUsage, ToolCall
from zq_notebook.engine.ports import StreamOptions
from zq_notebook.errors import ScriptError
from zq_notebook.providers.base import text_of

Messages: TypeAlias = Sequence[Mapping[str, Any]]
ToolCallLike: TypeAlias = ToolCall | tuple[str, Mapping[str, Any] | str] | Mapping[str, Any]

_WORD = re.compile(r"\s*\S+|\s+")


@dataclass(frozen=True)
class Step:
    """One reply of the scripted model.

    text: what it says; reasoning: what it thinks, streamed before the text.
    tool_calls: the calls it asks for: :class:`ToolCall` objects, ``("name", {arguments})`` pairs or mappings with
        ``name``, ``arguments`` and perhaps ``id``. Arguments given as a string are passed on as they are, valid or not.
    usage: the tokens it reports, as :class:`TokenUsage` or a mapping of its fields.
    finish_reason: ``tool_calls`` or ``stop`` unless given; ``""`` ends the stream without one, as a cut stream does.
    error: raised once reasoning and text were streamed, in place of the end of the stream.
    expect: a text that the request's last message must contain, or a function of that message that must be true.
    chunk_size: characters per delta; one word per delta unless given.
    delay: seconds to wait before each delta; ends early when the turn is stopped.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: Sequence[ToolCallLike] = ()
    usage: TokenUsage | Mapping[str, int] | None = None
    finish_reason: str | None = None
    error: BaseException | None = None
    expect: str | Callable[[Mapping[str, Any]], object] | None = None
    chunk_size: int | None = None
    delay: float = 0.0


StepLike: TypeAlias = Step | str | Mapping[str, Any]
ScriptLine: TypeAlias = StepLike | Callable[[Messages], StepLike]


@dataclass(frozen=True)
class ScriptedRequest:
    """What the scripted model was asked: the messages and tools as they were at that moment."""

    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    options: StreamOptions


class ScriptedProvider:
    """A :class:`~zq_notebook.providers.base.ProviderClient` that follows a script (Manual §10.2).

    steps: one per request: a :class:`Step`, a string (a step of text), a mapping of ``Step``'s fields, or a function
        from the request's messages to one of these.
    chat_replies: the answers of :meth:`chat`, in order; without one left, ``chat`` gives ``None``.

    ``requests`` and ``chat_requests`` record what was asked. As a context manager it calls :meth:`assert_finished` at
    the end of a block that raised nothing.
    """

    def __init__(self, steps: Iterable[ScriptLine] = (), *, chat_replies: Iterable[str | None] = ()) -> None:
        self.steps: list[ScriptLine] = list(steps)
        self.requests: list[ScriptedRequest] = []
        self.chat_requests: list[ScriptedRequest] = []
        self.position = 0
        self._chat_replies = list(chat_replies)
        self._calls_made = 0
        self._failure: ScriptError | None = None

    async def stream(
        self, model: str, messages: Messages, tools: Sequence[Mapping[str, Any]], opts: StreamOptions
    ) -> AsyncIterator[StreamChunk]:
        """The next step, in deltas of a word.

        Raises ScriptError when there is no next step or its ``expect`` is not met, and the step's own ``error``.
        When ``opts.cancel`` is set the stream simply ends.
        """
        self.requests.append(_record(model, messages, tools, opts))
        step = self._next_step(messages)
        calls = [self._call(call) for call in step.tool_calls]
        for kind, text in (("reasoning", step.reasoning), ("content", step.text)):
            for delta in _deltas(text, step.chunk_size):
                if step.delay:
                    await opts.cancel.wait_async(step.delay)
                else:
                    await asyncio.sleep(0)
                if opts.cancel.is_set():
                    return
                yield StreamChunk(content=delta) if kind == "content" else StreamChunk(reasoning=delta)
        if step.error is not None:
            raise step.error
        finish = step.finish_reason
        if finish is None:
            finish = "tool_calls" if calls else "stop"
        usage = TokenUsage(**step.usage) if isinstance(step.usage, Mapping) else step.usage
        yield StreamChunk(tool_calls=calls or None, usage=usage, finish_reason=finish or None)

    async def chat(
        self,
        model: str,
        messages: Messages,
        options: Mapping[str, Any] | None,
        opts: StreamOptions,
        params: Mapping[str, Any] | None = None,
    ) -> str | None:
        """The next of ``chat_replies``, or ``None`` when there is none left."""
        self.chat_requests.append(_record(model, messages, (), opts))
        return self._chat_replies.pop(0) if self._chat_replies else None

    async def aclose(self) -> None:
        """Nothing to close; here so that a scripted model can stand wherever a real one does."""

    @property
    def remaining(self) -> list[ScriptLine]:
        """The steps that were not asked for yet."""
        return self.steps[self.position :]

    def assert_finished(self) -> None:
        """Raise ScriptError when the script failed earlier, or has steps that nobody asked for."""
        if self._failure is not None:
            raise self._failure
        if self.remaining:
            names = "; ".join(f"step {n}: {_title(s)}" for n, s in enumerate(self.remaining, self.position + 1))
            raise ScriptError(
                f"The script of {len(self.steps)} steps was left after {self.position} requests. Not asked for: "
                f"{names}. Remove these steps, or find out why the turn ended before them."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.assert_finished()

    def _next_step(self, messages: Messages) -> Step:
        if self.position >= len(self.steps):
            raise self._fail(
                f"The script has {len(self.steps)} steps, and request {self.position + 1} needs one more. The request "
                f"ends with {_describe(messages)}. Add a step for it, or find out why the model was asked again."
            )
        line = self.steps[self.position]
        self.position += 1
        step = _as_step(line(messages) if callable(line) else line)
        self._check(step, messages)
        return step

    def _check(self, step: Step, messages: Messages) -> None:
        if step.expect is None:
            return
        last = messages[-1] if messages else {}
        if callable(step.expect):
            met, wanted = (
                bool(step.expect(last)),
                f"a message that {getattr(step.expect, '__name__', 'expect')} accepts",
            )
        else:
            met, wanted = step.expect in text_of(last), f"a message with {step.expect!r}"
        if not met:
            raise self._fail(
                f"Step {self.position} of the script expected {wanted}, and the request ends with "
                f"{_describe(messages)}. Correct the step's expect=, or what came before it."
            )

    def _fail(self, message: str) -> ScriptError:
        error = ScriptError(message)
        # Engines report a provider's errors as events; keeping the first lets assert_finished() tell it again.
        self._failure = self._failure or error
        return error

    def _call(self, call: ToolCallLike) -> ToolCall:
        if isinstance(call, tuple):
            call = {"name": call[0], "arguments": call[1]}
        made = ToolCall.of(call)
        self._calls_made += 1
        return made if made.id else ToolCall(f"call_{self._calls_made}", made.name, made.arguments)


def _as_step(value: StepLike) -> Step:
    if isinstance(value, Step):
        return value
    if isinstance(value, str):
        return Step(value)
    known = {field.name for field in fields(Step)}
    unknown = sorted(set(value) - known)
    if unknown:
        raise ScriptError(
            f"A step of the script has the unknown keys {', '.join(unknown)}. A step knows {', '.join(sorted(known))}."
        )
    return Step(**value)


def _deltas(text: str, size: int | None) -> list[str]:
    if size is None:
        return _WORD.findall(text)
    return [text[at : at + size] for at in range(0, len(text), max(1, size))]


def _record(model: str, messages: Messages, tools: Sequence[Mapping[str, Any]], opts: StreamOptions) -> ScriptedRequest:
    return ScriptedRequest(model, [dict(m) for m in messages], [dict(t) for t in tools], opts)


def _describe(messages: Messages) -> str:
    """The last message in a few words, for an error."""
    if not messages:
        return "no message at all"
    text = text_of(messages[-1])
    shown = text if len(text) <= 300 else f"{text[:300]}…"
    return f"a {messages[-1].get('role', '?')} message {shown!r}"


def _title(line: ScriptLine) -> str:
    """A step in a few words, for an error."""
    if callable(line):
        return f"function {getattr(line, '__name__', 'step')}"
    step = _as_step(line)
    names = [call[0] if isinstance(call, tuple) else ToolCall.of(call).name for call in step.tool_calls]
    parts = [repr(step.text[:60])] if step.text else []
    parts += [f"calls {', '.join(names)}"] if names else []
    parts += [f"raises {type(step.error).__name__}"] if step.error is not None else []
    return ", ".join(parts) or "an empty step"
