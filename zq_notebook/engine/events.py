"""The events of a turn: typed in Python, the manual's names on the wire (Manual §9).

Each event type is one small struct with snake_case attributes. ``event.type`` is its :class:`EventType`, ``event.data``
the manual's wire dictionary, ``event.to_json()`` that dictionary as JSON. Optional fields without a value are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar

import msgspec

from zq_notebook.text.unicode import well_formed, well_formed_value
from zq_notebook.toolio import ToolOutput


class EventType(StrEnum):
    """The 21 event types of Manual §9.2."""

    TURN_START = "turn_start"
    ASSISTANT_DELTA = "assistant_delta"
    REASONING_DELTA = "reasoning_delta"
    ASSISTANT_MESSAGE = "assistant_message"
    TOOL_PROPOSED = "tool_proposed"
    PERMISSION_REQUIRED = "permission_required"
    TOOL_STARTED = "tool_started"
    TOOL_FINISHED = "tool_finished"
    ITERATION_END = "iteration_end"
    TURN_END = "turn_end"
    ERROR = "error"
    INTERRUPTED = "interrupted"
    COMPACTING = "compacting"
    COMPACTED = "compacted"
    QUEUE_STEERING = "queue_steering"
    LLM_REQUEST = "llm_request"
    ASK_USER_QUESTION = "ask_user_question"
    PLAN_PROPOSED = "plan_proposed"
    DIRECTORY_REQUESTED = "directory_requested"
    LLM_RETRY = "llm_retry"
    SESSION_NAMED = "session_named"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all events.

    ``renamed`` maps attribute names to wire names where they differ; ``in_process`` names the attributes that stay off
    the wire.
    """

    type: ClassVar[EventType]
    in_process: ClassVar[frozenset[str]] = frozenset()
    renamed: ClassVar[Mapping[str, str]] = {
        "task_id": "taskId",
        "req_id": "reqId",
        "attachment_count": "attachmentCount",
        "log_time": "logTime",
        "start_time": "startTime",
        "context_window": "contextWindow",
        "threshold_pct": "thresholdPct",
        "threshold_tokens": "thresholdTokens",
        "outbound_messages": "outboundMessages",
        "messages_before": "messagesBefore",
        "messages_after": "messagesAfter",
        "boundary_index": "boundaryIndex",
        "summary_preview": "summaryPreview",
        "kept_user_messages": "keptUserMessages",
        "dropped_user_messages": "droppedUserMessages",
        "msg_count": "msgCount",
        "tool_count": "toolCount",
        "allow_text": "allowText",
        "wait_ms": "waitMs",
    }

    @property
    def data(self) -> dict[str, Any]:
        """The wire dictionary: the fields of Manual §9.2 and no others."""
        renamed = self.renamed
        return {
            renamed.get(name, name): value
            for name in self.__struct_fields__
            if name not in self.in_process and (value := getattr(self, name)) is not None
        }

    def to_json(self) -> str:
        """:attr:`data` as JSON; text that is not valid Unicode is repaired rather than refused."""
        try:
            return msgspec.json.encode(self.data, enc_hook=_as_text).decode()
        except UnicodeEncodeError:
            return msgspec.json.encode(well_formed_value(self.data), enc_hook=_as_text).decode()


def _as_text(value: object) -> str:
    return well_formed(str(value))


class TurnStart(Event, frozen=True, kw_only=True):
    """A turn begins."""

    type = EventType.TURN_START
    task_id: str = ""
    input: str
    attachment_count: int | None = None
    attachments: Sequence[Mapping[str, Any]] | None = None


class AssistantDelta(Event, frozen=True, kw_only=True):
    """The next piece of the model's answer."""

    type = EventType.ASSISTANT_DELTA
    text: str
    req_id: str
    task_id: str = ""


class ReasoningDelta(Event, frozen=True, kw_only=True):
    """The next piece of the model's reasoning."""

    type = EventType.REASONING_DELTA
    text: str
    req_id: str
    task_id: str = ""


class AssistantMessage(Event, frozen=True, kw_only=True):
    """One reply is complete. ``tool_calls`` are the names of the tools it asks for."""

    type = EventType.ASSISTANT_MESSAGE
    text: str
    reasoning: str
    tool_calls: Sequence[str]
    req_id: str
    task_id: str = ""
    log_time: str
    usage: Mapping[str, Any] | None = None


class ToolProposed(Event, frozen=True, kw_only=True):
    """The model proposes a tool call; ``req_id`` is the id of that call here and in the events that follow it."""

    type = EventType.TOOL_PROPOSED
    req_id: str
    name: str
    arguments: Mapping[str, Any]
    task_id: str = ""


class PermissionRequired(Event, frozen=True, kw_only=True):
    """The approver is about to be asked."""

    type = EventType.PERMISSION_REQUIRED
    task_id: str = ""
    req_id: str
    name: str
    arguments: Mapping[str, Any]
    reason: str
    category: str


class ToolStarted(Event, frozen=True, kw_only=True):
    """A tool starts. ``start_time`` is ISO 8601 in UTC."""

    type = EventType.TOOL_STARTED
    task_id: str = ""
    req_id: str
    name: str
    start_time: str | None = None


class ToolFinished(Event, frozen=True, kw_only=True):
    """A tool call has its result. ``duration`` is in milliseconds.

    ``output`` (pictures, a summary, something to show) is there for views in this process and not on the wire.
    """

    type = EventType.TOOL_FINISHED
    in_process = frozenset({"output"})
    task_id: str = ""
    req_id: str
    name: str
    status: str
    reason: str | None = None
    duration: int | None = None
    result_preview: str | None = None
    output: ToolOutput | None = None


class IterationEnd(Event, frozen=True, kw_only=True):
    """One model request and all its tool calls are done. Iterations count from 1."""

    type = EventType.ITERATION_END
    iteration: int
    task_id: str = ""


class TurnEnd(Event, frozen=True, kw_only=True):
    """The last event of every turn: ``completed``, ``max_iterations_exceeded``, ``interrupted`` or ``error``."""

    type = EventType.TURN_END
    status: str
    iterations: int
    produced_files: Sequence[str]
    task_id: str = ""


class ErrorEvent(Event, frozen=True, kw_only=True):
    """The turn cannot go on. ``retriable`` says whether ``engine.retry()`` may help."""

    type = EventType.ERROR
    error: str
    error_type: str
    retriable: bool
    iteration: int
    req_id: str
    log_time: str
    task_id: str = ""
    stack: str | None = None


class Interrupted(Event, frozen=True, kw_only=True):
    """The user stopped the turn."""

    type = EventType.INTERRUPTED
    iterations: int
    req_id: str
    task_id: str = ""


class Compacting(Event, frozen=True, kw_only=True):
    """History is about to be compacted (token counts in tokens)."""

    type = EventType.COMPACTING
    task_id: str = ""
    trigger: str
    tokens: int
    estimated: bool
    context_window: int
    threshold_pct: float
    threshold_tokens: int
    outbound_messages: int


class Compacted(Event, frozen=True, kw_only=True):
    """History was compacted."""

    type = EventType.COMPACTED
    req_id: str
    task_id: str = ""
    method: str
    messages_before: int
    messages_after: int
    boundary_index: int | None = None
    model: str | None = None
    summary_preview: str | None = None
    kept_user_messages: int | None = None
    dropped_user_messages: int | None = None


class QueueSteering(Event, frozen=True, kw_only=True):
    """A queued instruction was given to the model."""

    type = EventType.QUEUE_STEERING
    text: str
    task_id: str = ""
    attachments: Sequence[Mapping[str, Any]] | None = None


class LlmRequest(Event, frozen=True, kw_only=True):
    """The model is about to be asked."""

    type = EventType.LLM_REQUEST
    req_id: str
    task_id: str = ""
    log_time: str
    model: str
    msg_count: int
    tool_count: int
    compact: bool | None = None


class AskUserQuestion(Event, frozen=True, kw_only=True):
    """The model asks the user something."""

    type = EventType.ASK_USER_QUESTION
    task_id: str = ""
    question: str
    options: Sequence[str]
    allow_text: bool
    multi: bool


class PlanProposed(Event, frozen=True, kw_only=True):
    """The model proposes a plan."""

    type = EventType.PLAN_PROPOSED
    in_process = frozenset({"task_id"})
    plan: Any
    task_id: str = ""


class DirectoryRequested(Event, frozen=True, kw_only=True):
    """The model asks for access to a directory."""

    type = EventType.DIRECTORY_REQUESTED
    in_process = frozenset({"task_id"})
    reason: str
    path: str
    writable: bool
    task_id: str = ""


class LlmRetry(Event, frozen=True, kw_only=True):
    """A request failed on the network and will be sent again in ``wait_ms`` milliseconds."""

    type = EventType.LLM_RETRY
    attempt: int
    max: int
    reason: str
    wait_ms: int
    iteration: int
    req_id: str


class SessionNamed(Event, frozen=True, kw_only=True):
    """The session got a name; ``source`` is ``auto`` or ``user``."""

    type = EventType.SESSION_NAMED
    name: str
    source: str


EVENT_CLASSES: Mapping[str, type[Event]] = {
    cls.type.value: cls
    for cls in (
        TurnStart,
        AssistantDelta,
        ReasoningDelta,
        AssistantMessage,
        ToolProposed,
        PermissionRequired,
        ToolStarted,
        ToolFinished,
        IterationEnd,
        TurnEnd,
        ErrorEvent,
        Interrupted,
        Compacting,
        Compacted,
        QueueSteering,
        LlmRequest,
        AskUserQuestion,
        PlanProposed,
        DirectoryRequested,
        LlmRetry,
        SessionNamed,
    )
}
