"""Who answers an approval: a card that someone sees, else a prompt, else the unattended policy (design: §3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from zq_notebook.engine.approval import ApprovalOutcome, ApprovalReply, PermissionRequest
from zq_notebook.errors import ApproverMissingError

ACKNOWLEDGE_SECONDS = 5.0
POLICIES = ("deny", "allow", "error")


class CardView(Protocol):
    """What the ladder needs of a view that can show a card. ``reachable`` proves that someone's page shows it now."""

    async def reachable(self, timeout: float) -> bool: ...
    def ask(self, request: PermissionRequest, answer: Callable[[ApprovalReply], None]) -> None: ...


class ApprovalLadder:
    """Answers the engine's approval requests, on the engine's loop.

    Args:
        on_main: runs a function soon on the kernel's main thread, in the cell's context.
        card_view: the view with cards, ``None`` where widgets cannot be shown.
        prompt: asks with ``input()`` on the main thread, ``None`` where the front end takes no input.
        policy: ``deny``, ``allow`` or ``error``, when nobody is there.
        record: told, on the main thread, what was asked and what was answered (``None``: withdrawn).
    """

    def __init__(
        self,
        *,
        on_main: Callable[[Callable[[], object]], None],
        card_view: CardView | None,
        prompt: Callable[[PermissionRequest], Awaitable[ApprovalReply]] | None,
        policy: str,
        record: Callable[[PermissionRequest, ApprovalReply | None], None],
    ) -> None:
        self._on_main = on_main
        self._card_view = card_view
        self._prompt = prompt
        self._policy = policy
        self._record = record

    async def __call__(self, request: PermissionRequest) -> ApprovalReply:
        """Climb down until a rung holds. Cancelled when the turn is stopped; the card is then withdrawn."""
        reply: ApprovalReply | None = None
        try:
            reply = await self._answer(request)
        finally:
            self._on_main(lambda: self._record(request, reply))
        return reply

    async def _answer(self, request: PermissionRequest) -> ApprovalReply:
        if self._card_view is not None and await self._card_view.reachable(ACKNOWLEDGE_SECONDS):
            return await self._ask_card(self._card_view, request)
        if self._prompt is not None:
            return await self._prompt(request)
        return unattended_reply(self._policy, request)

    async def _ask_card(self, view: CardView, request: PermissionRequest) -> ApprovalReply:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[ApprovalReply] = loop.create_future()

        def settle(reply: ApprovalReply) -> None:
            # Two clicks, or a click on two views of the same cell: the first one counts.
            if not answered.done():
                answered.set_result(reply)

        def answer(reply: ApprovalReply) -> None:
            loop.call_soon_threadsafe(settle, reply)

        self._on_main(lambda: view.ask(request, answer))
        return await answered


def nobody_there(tool_name: str) -> ApproverMissingError:
    """The error of a call that needs approval where nobody is and the unattended policy is ``error``."""
    error = ApproverMissingError(tool_name)
    error.args = (
        f"{tool_name} needs an approval, nobody is here to give it, and the unattended policy is 'error', so the turn "
        f"was ended. Allow the tool beforehand (%agent allow {tool_name}), use --mode auto, or set ZQ_UNATTENDED to "
        "'deny' or 'allow'.",
    )
    return error


def unattended_reply(policy: str, request: PermissionRequest) -> ApprovalReply:
    """What the policy says when nobody is there. Raises ApproverMissingError for ``error``."""
    if policy == "error":
        raise nobody_there(request.tool_name)
    outcome = ApprovalOutcome.ONCE if policy == "allow" else ApprovalOutcome.DENY
    reason = f"nobody is here to answer (unattended policy: {policy})"
    return ApprovalReply(outcome, reason=reason, answered_by="policy")


CHOICES = {
    "y": ApprovalOutcome.ONCE,
    "yes": ApprovalOutcome.ONCE,
    "t": ApprovalOutcome.ALWAYS_TOOL,
    "c": ApprovalOutcome.ALWAYS_COMMAND,
}


def parse_typed_answer(typed: str, *, command: bool) -> ApprovalReply | None:
    """What was typed at the prompt; ``None`` when it means nothing. ``n`` or ``n REASON`` denies."""
    words = typed.strip()
    outcome = CHOICES.get(words.lower())
    if outcome is ApprovalOutcome.ALWAYS_COMMAND and not command:
        return None
    if outcome is not None:
        return ApprovalReply(outcome, answered_by="prompt")
    first, _, reason = words.partition(" ")
    if first.lower() in ("n", "no"):
        return ApprovalReply(ApprovalOutcome.DENY, reason=reason.strip() or None, answered_by="prompt")
    return None
