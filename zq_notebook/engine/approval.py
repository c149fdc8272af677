"""Asking a person (or a rule that stands in for one) whether a call may run (Manual §8.3)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Mapping
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from zq_notebook.errors import AgentError, UsageError


class ApprovalOutcome(StrEnum):
    """The four answers to an approval request."""

    ONCE = "once"
    ALWAYS_TOOL = "always_tool"
    ALWAYS_COMMAND = "always_command"
    DENY = "deny"


class ApprovalReply(msgspec.Struct, frozen=True):
    """An outcome with more to say: ``reason`` reaches the model, ``answered_by`` the transcript."""

    outcome: ApprovalOutcome
    reason: str | None = None
    answered_by: str | None = None


class PermissionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the approver is shown. ``tool_call_id`` is the ``reqId`` of the call's events."""

    tool_name: str
    arguments: Mapping[str, Any]
    metadata: Any
    reason: str
    tool_call_id: str | None = None


class Approver(Protocol):
    """A function or coroutine function that answers a request."""

    def __call__(
        self, request: PermissionRequest, /
    ) -> ApprovalOutcome | ApprovalReply | str | Awaitable[ApprovalOutcome | ApprovalReply | str]: ...


class ApproverFailed(Exception):
    """The approver did not answer; ``cause`` is what the caller of the engine is to see."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


async def ask(approver: Approver, request: PermissionRequest) -> ApprovalReply:
    """The approver's answer. Raises :class:`ApproverFailed` for anything that is not one."""
    try:
        answer = approver(request)
        if inspect.isawaitable(answer):
            answer = await answer
        return _reply(answer)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Raised out of the event stream it would look as if the consumer itself had been cancelled.
        withdrawn = AgentError(
            f"The approver was cancelled before it answered for {request.tool_name}, so the call was not run. "
            "Start the turn again when somebody can answer."
        )
        withdrawn.__cause__ = error
        raise ApproverFailed(withdrawn) from error
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        raise ApproverFailed(error) from error


def _reply(answer: object) -> ApprovalReply:
    """The answer in its full form. Raises :class:`UsageError` when it is none."""
    reply = answer if isinstance(answer, ApprovalReply) else ApprovalReply(answer)  # type: ignore[arg-type]
    try:
        return msgspec.structs.replace(reply, outcome=ApprovalOutcome(reply.outcome))
    except ValueError:
        raise UsageError(
            f"The approver answered {reply.outcome!r}, so the call was not run. It must answer one of: "
            f"{', '.join(ApprovalOutcome)}."
        ) from None
