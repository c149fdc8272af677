"""Asking a person (or a rule that stands in for one) whether a call may run (Manual §8.3)."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from enum import StrEnum
from typing import Any, Protocol

import msgspec


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
