"""The record of one turn: what the model said, what it did, what was asked and answered (Manual §9).

A pure model without widgets. The views draw from it while the turn runs, and :mod:`transcript_bundle` makes of it what
the notebook keeps.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from zq_notebook.engine import events as ev
from zq_notebook.engine.approval import ApprovalOutcome, ApprovalReply, PermissionRequest
from zq_notebook.notebook.transcript_blocks import (
    Block,
    Change,
    Footer,
    NoticeBlock,
    ReasoningBlock,
    TextBlock,
    ToolBlock,
)
from zq_notebook.notebook.words import ALLOWED_EARLIER, approval_words

_TextLike = TypeVar("_TextLike", bound=TextBlock)


class Transcript:
    """One turn. ``mode`` is a permission mode; ``clock`` gives seconds and only times the reasoning."""

    def __init__(self, role: str, model: str, mode: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.role = role
        self.model = model
        self.mode = mode
        self.blocks: list[Block] = []
        self.footer: Footer | None = None
        self.tokens: int | None = None
        self.cost: float | None = None
        self._clock = clock
        self._next_id = 1
        self._request_from = 0  # the index of the first block of the model's current reply
        self._tools: dict[str, ToolBlock] = {}
        self._always = set[tuple[str, object]]()  # tool and command, or tool and None for all that it does

    # -- what happens ---------------------------------------------------------------------------------------------

    def apply(self, event: ev.Event) -> list[Change]:
        """Take one event in; returns what it changed, in order."""
        match event:
            case ev.AssistantDelta():
                return self._grow(TextBlock, event.text)
            case ev.ReasoningDelta():
                return self._grow(ReasoningBlock, event.text)
            case ev.AssistantMessage():
                return self._message(event)
            case ev.LlmRequest():
                self._request_from = len(self.blocks)
                return []
            case ev.LlmRetry():
                return [*self._discard_reply(), self._notice("warning", _retry_words(event))]
            case ev.ToolProposed() | ev.PermissionRequired() | ev.ToolStarted() | ev.ToolFinished():
                return self._tool_event(event)
            case ev.TurnEnd():
                return self._end()
            case _:
                return self._other(event)

    def approval_asked(self, request: PermissionRequest) -> list[Change]:
        """Someone is being asked whether a call may run."""
        changes, tool = self._tool(request.tool_call_id or request.tool_name, request.tool_name)
        tool.arguments = request.arguments
        return [*changes, *self._set_status(tool, "waiting")]

    def approval_answered(self, tool_call_id: str, reply: ApprovalReply) -> list[Change]:
        """The answer came. A denied call keeps its reason on its line."""
        tool = self._tools.get(tool_call_id)
        if tool is None:
            return []
        tool.reply, tool.note = reply, approval_words(reply)
        if reply.outcome == ApprovalOutcome.ALWAYS_TOOL:
            self._always.add((tool.name, None))
        elif reply.outcome == ApprovalOutcome.ALWAYS_COMMAND:
            self._always.add((tool.name, tool.arguments.get("command")))
        if tool.finished:
            return [Change("change", tool)]
        return self._set_status(tool, "denied" if reply.outcome == ApprovalOutcome.DENY else "proposed")

    def finish(self, footer: Footer) -> list[Change]:
        """The turn is over; nothing changes after this."""
        self.footer = footer
        self.tokens = footer.tokens if footer.tokens is not None else self.tokens
        self.cost = footer.cost if footer.cost is not None else self.cost
        return self._end()

    @property
    def settled(self) -> list[Block]:
        """The blocks that stay as they are, up to the first that may still change or be discarded."""
        for index, block in enumerate(self.blocks):
            if isinstance(block, TextBlock) and not (block.done and index < self._request_from):
                return self.blocks[:index]
            if isinstance(block, ToolBlock) and not block.finished:
                return self.blocks[:index]
        return list(self.blocks)

    def tool(self, tool_call_id: str) -> ToolBlock | None:
        """The block of a call, if it was proposed."""
        return self._tools.get(tool_call_id)

    # -- text -----------------------------------------------------------------------------------------------------

    def _grow(self, kind: type[_TextLike], text: str) -> list[Change]:
        if not text:
            return []
        last = self.blocks[-1] if self.blocks else None
        if type(last) is kind and not last.done:
            last.append(text)
            return [Change("grow", last, text)]
        return [*self._end_texts(), self._add_text(kind, text)]

    def _add_text(self, kind: type[_TextLike], text: str) -> Change:
        block = ReasoningBlock(0, self._clock(), text) if kind is ReasoningBlock else TextBlock(0, text)
        return self._add(block)

    def _message(self, event: ev.AssistantMessage) -> list[Change]:
        """The complete reply wins over what was streamed, should they differ."""
        reply = self.blocks[self._request_from :]
        texts = [block for block in reply if type(block) is TextBlock]
        changes = list[Change]()
        if not any(type(block) is ReasoningBlock for block in reply) and event.reasoning.strip():
            change = self._add_text(ReasoningBlock, event.reasoning)
            if isinstance(change.block, ReasoningBlock):
                change.block.done = True
            changes.append(change)
        streamed = "".join(block.text for block in texts)
        if not texts and event.text.strip():
            changes.append(self._add_text(TextBlock, event.text))
        elif len(texts) == 1 and event.text.strip() and streamed.strip() != event.text.strip():
            texts[0].replace(event.text)
            changes.append(Change("change", texts[0]))
        changes += self._end_texts()
        self._request_from = len(self.blocks)
        return changes

    def _discard_reply(self) -> list[Change]:
        """A reply that broke off is sent again from its start, so what came of it goes."""
        gone = [block for block in self.blocks[self._request_from :] if isinstance(block, TextBlock)]
        self.blocks = [block for block in self.blocks if block not in gone]
        return [Change("remove", block) for block in gone]

    def _end_texts(self) -> list[Change]:
        changes = []
        for block in self.blocks[self._request_from :]:
            if isinstance(block, TextBlock) and not block.done:
                block.done = True
                if isinstance(block, ReasoningBlock):
                    block.seconds = self._clock() - block.started
                changes.append(Change("change", block))
        return changes

    # -- tools ----------------------------------------------------------------------------------------------------

    def _tool(self, call_id: str, name: str) -> tuple[list[Change], ToolBlock]:
        tool = self._tools.get(call_id)
        if tool is not None:
            return [], tool
        tool = ToolBlock(id=0, call_id=call_id, name=name)
        self._tools[call_id] = tool
        return [*self._end_texts(), self._add(tool)], tool

    def _tool_event(
        self, event: ev.ToolProposed | ev.PermissionRequired | ev.ToolStarted | ev.ToolFinished
    ) -> list[Change]:
        changes, tool = self._tool(event.req_id, event.name)
        match event:
            case ev.ToolProposed():
                tool.arguments = event.arguments
                return changes or [Change("change", tool)]
            case ev.PermissionRequired():
                tool.arguments = event.arguments
                return [*changes, *self._set_status(tool, "waiting")] if not tool.note else changes
            case ev.ToolStarted():
                if tool.status == "proposed" and not tool.note and self._allowed_earlier(tool):
                    tool.note = ALLOWED_EARLIER
                return [*changes, *self._set_status(tool, "running")]
            case ev.ToolFinished():
                self._finish_tool(tool, event)
                return [*changes, Change("change", tool)]
        return changes

    def _allowed_earlier(self, tool: ToolBlock) -> bool:
        """Whether this call runs unasked because an answer of this turn also covers it."""
        command = tool.arguments.get("command")
        return (tool.name, None) in self._always or (command is not None and (tool.name, command) in self._always)

    def _finish_tool(self, tool: ToolBlock, event: ev.ToolFinished) -> None:
        tool.status = event.status
        tool.reason = event.reason or ""
        tool.duration = None if event.duration is None else event.duration / 1000
        tool.preview = event.result_preview or ""
        if event.output is not None:
            tool.summary = event.output.summary or ""
            tool.display = event.output.display
            tool.images = event.output.images
            tool.preview = tool.preview or event.output.text
        if event.status == "error":
            tool.preview = _error_words(tool.preview) or tool.reason
        if event.status == "denied" and not tool.note:
            tool.note = f"denied: {tool.reason}" if tool.reason else "denied"

    def _set_status(self, tool: ToolBlock, status: str) -> list[Change]:
        if tool.finished:
            return []
        tool.status = status
        return [Change("change", tool)]

    def _end(self) -> list[Change]:
        changes = [*self._end_texts(), *self._end_tools()]
        self._request_from = len(self.blocks)
        return changes

    def _end_tools(self) -> list[Change]:
        changes = []
        for tool in self._tools.values():
            if not tool.finished:
                tool.status = "interrupted"
                changes.append(Change("change", tool))
        return changes

    # -- everything else ------------------------------------------------------------------------------------------

    def _other(self, event: ev.Event) -> list[Change]:
        notice = _notice_of(event)
        return [] if notice is None else [*self._end_texts(), self._notice(*notice)]

    def _notice(self, tone: str, text: str) -> Change:
        return self._add(NoticeBlock(id=0, tone=tone, text=text))

    def _add(self, block: Block) -> Change:
        block.id = self._next_id
        self._next_id += 1
        self.blocks.append(block)
        return Change("add", block)


def _retry_words(event: ev.LlmRetry) -> str:
    return f"The model could not be reached ({event.reason.rstrip('.')}). Trying again, {event.attempt} of {event.max}."


def _notice_of(event: ev.Event) -> tuple[str, str] | None:
    match event:
        case ev.Interrupted():
            return "warning", "Interrupted."
        case ev.ErrorEvent():
            return "error", event.error
        case ev.QueueSteering():
            return "user", f"You added: {event.text}"
        case ev.Compacted():
            return "info", _compacted_words(event)
        case ev.AskUserQuestion():
            return "info", "\n".join([f"Question: {event.question}", *(f"• {option}" for option in event.options)])
        case ev.PlanProposed():
            return "info", f"Plan: {_plan_words(event.plan)}"
        case ev.DirectoryRequested():
            access = "read and write" if event.writable else "read"
            return "info", f"Asks to {access} in {event.path}: {event.reason}"
        case _:
            return None


def _compacted_words(event: ev.Compacted) -> str:
    before, after = event.messages_before, event.messages_after
    if event.method == "trimmed" and before == after:
        return "Old tool results were shortened to make room."
    return f"The conversation was shortened to make room: {before} messages became {after}."


def _plan_words(plan: object) -> str:
    if isinstance(plan, str):
        return plan
    if isinstance(plan, Iterable) and not isinstance(plan, dict):
        return "\n".join(f"{number}. {step}" for number, step in enumerate(plan, 1))
    return json.dumps(plan, indent=2, ensure_ascii=False, default=repr)


def _error_words(preview: str) -> str:
    """The message in a tool's error object, or the text as it is."""
    try:
        decoded = json.loads(preview)
    except ValueError:
        return preview
    if isinstance(decoded, dict) and isinstance(decoded.get("error"), str):
        return str(decoded["error"])
    return preview
