"""The ladder: card, prompt, policy."""

import asyncio
from collections.abc import Callable

import pytest

from zq_notebook.engine.approval import ApprovalOutcome, ApprovalReply, PermissionRequest
from zq_notebook.errors import ApproverMissingError
from zq_notebook.notebook.approvals import ApprovalLadder, parse_typed_answer

REQUEST = PermissionRequest(tool_name="run_code", arguments={"code": "1"}, metadata=None, reason="", tool_call_id="c1")
ONCE = ApprovalReply(ApprovalOutcome.ONCE, answered_by="card")


class Cards:
    """A page that is there, or not, and clicks what it is told to click."""

    def __init__(self, there: bool, clicks: list[ApprovalReply]) -> None:
        self.there, self.clicks = there, clicks
        self.shown: list[PermissionRequest] = []
        self.asked = asyncio.Event()

    async def reachable(self, timeout: float) -> bool:
        return self.there

    def ask(self, request: PermissionRequest, answer: Callable[[ApprovalReply], None]) -> None:
        self.shown.append(request)
        self.asked.set()
        for click in self.clicks:
            answer(click)


async def typed(request: PermissionRequest) -> ApprovalReply:
    return ApprovalReply(ApprovalOutcome.ALWAYS_TOOL, answered_by="prompt")


def ladder(records: list[object], **given: object) -> ApprovalLadder:
    arguments = {"card_view": None, "prompt": None, "policy": "deny", **given}
    return ApprovalLadder(
        on_main=lambda function: function(),
        record=lambda request, reply: records.append(reply),
        **arguments,  # type: ignore[arg-type]
    )


async def test_the_card_answers_when_a_page_shows_it_and_only_the_first_click_counts() -> None:
    records: list[object] = []
    cards = Cards(True, [ONCE, ApprovalReply(ApprovalOutcome.DENY)])
    assert await ladder(records, card_view=cards, prompt=typed)(REQUEST) == ONCE
    assert cards.shown == [REQUEST]
    assert records == [ONCE]


async def test_the_prompt_answers_when_no_page_shows_the_card() -> None:
    reply = await ladder([], card_view=Cards(False, [ONCE]), prompt=typed)(REQUEST)
    assert reply.answered_by == "prompt"


async def test_the_policy_answers_when_nobody_is_there() -> None:
    reply = await ladder([])(REQUEST)
    assert reply.outcome is ApprovalOutcome.DENY
    assert "nobody is here" in str(reply.reason)
    assert (await ladder([], policy="allow")(REQUEST)).outcome is ApprovalOutcome.ONCE
    with pytest.raises(ApproverMissingError):
        await ladder([], policy="error")(REQUEST)


async def test_a_stopped_turn_withdraws_the_question() -> None:
    records: list[object] = []
    cards = Cards(True, [])
    task = asyncio.ensure_future(ladder(records, card_view=cards)(REQUEST))
    await cards.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert records == [None]


@pytest.mark.parametrize(
    ("text", "command", "expected"),
    [
        ("y", False, ApprovalReply(ApprovalOutcome.ONCE, answered_by="prompt")),
        (" YES ", False, ApprovalReply(ApprovalOutcome.ONCE, answered_by="prompt")),
        ("t", False, ApprovalReply(ApprovalOutcome.ALWAYS_TOOL, answered_by="prompt")),
        ("c", True, ApprovalReply(ApprovalOutcome.ALWAYS_COMMAND, answered_by="prompt")),
        ("c", False, None),
        ("n", False, ApprovalReply(ApprovalOutcome.DENY, answered_by="prompt")),
        ("n not now", False, ApprovalReply(ApprovalOutcome.DENY, reason="not now", answered_by="prompt")),
        ("", False, None),
        ("never", False, None),
        ("yes please", False, None),
    ],
)
def test_only_a_clear_answer_counts(text: str, command: bool, expected: ApprovalReply | None) -> None:
    assert parse_typed_answer(text, command=command) == expected
