"""The rungs of the approval ladder in a notebook: cards in the view, questions at the keyboard."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence

from zq_notebook.engine.approval import ApprovalOutcome, ApprovalReply, PermissionRequest
from zq_notebook.errors import ToolError
from zq_notebook.notebook.approvals import CHOICES, parse_typed_answer
from zq_notebook.notebook.main_thread import MainThread
from zq_notebook.notebook.view.approval import ApprovalCard
from zq_notebook.notebook.view.base import TurnView
from zq_notebook.notebook.view.live import LiveView

MakeCard = Callable[[PermissionRequest], ApprovalCard]


class LiveCards:
    """Cards in a :class:`LiveView`.

    A page that has once shown this cell counts as there: the user may be back any moment, finds the card again when
    the page is reloaded, and can stop the turn meanwhile.
    """

    def __init__(self, view: LiveView, make_card: MakeCard) -> None:
        self._view = view
        self._make_card = make_card
        self._loop = asyncio.get_running_loop()
        self._given_up = False

    async def reachable(self, timeout: float) -> bool:
        """Whether a page shows the cell, waiting at most ``timeout`` seconds for it. For the engine's loop."""
        if self._view.acknowledged or self._given_up:
            return self._view.acknowledged
        waiting = asyncio.run_coroutine_threadsafe(self._view.wait_ready(timeout), self._loop)
        self._given_up = not await asyncio.wrap_future(waiting)
        return not self._given_up

    def ask(self, request: PermissionRequest, answer: Callable[[ApprovalReply], None]) -> None:
        """Show the card. On the main thread."""
        self._view.ask(self._make_card(request), answer)


class TypedAnswers:
    """Questions answered with ``input()``: VS Code, ``jupyter console``, plain IPython."""

    def __init__(self, view: TurnView, main: MainThread, make_card: MakeCard) -> None:
        self._view = view
        self._main = main
        self._make_card = make_card

    def approve(self, request: PermissionRequest) -> Awaitable[ApprovalReply]:
        """Ask whether a call may run. For the engine's loop."""
        return self._main.run(lambda: self._approve(request), name="the question about an approval")

    def question(self, question: str, options: Sequence[str], allow_text: bool, multi: bool) -> Awaitable[str]:
        """Ask what the model wants to know: a number, several with commas, or text. For the engine's loop."""
        return self._main.run(lambda: _ask_question(question, options, allow_text, multi), name="the question")

    def plan(self, plan: str) -> Awaitable[bool | str]:
        """Ask whether a plan may be carried out; text is what to change in it. For the engine's loop."""
        return self._main.run(lambda: _ask_plan(plan), name="the question about the plan")

    def _approve(self, request: PermissionRequest) -> ApprovalReply:
        card = self._make_card(request)
        always = " · c always this command" if card.can_always_command else ""
        prompt = f"y allow once · t always this tool{always} · n [reason] deny: "
        if not _output_is_seen():
            prompt = f"{card.title}\n{card.plain_body()}\n{prompt}"
        elif self._view.writes_cards:
            self._view.ask(card, lambda reply: None)
        else:
            print(f"{card.title}\n{card.plain_body()}")
        while True:
            try:
                typed = input(prompt)
            except EOFError:
                return ApprovalReply(ApprovalOutcome.DENY, reason="the input was closed", answered_by="prompt")
            reply = parse_typed_answer(typed, command=card.can_always_command)
            if reply is not None:
                return reply
            print(f"{typed.strip()!r} is none of the answers. {', '.join(CHOICES)} allow, n denies.")


def _output_is_seen() -> bool:
    """Whether what is printed now reaches the user before the question does; not so inside ``%%capture``."""
    return type(sys.stdout).__module__ == "ipykernel.iostream" or sys.stdout.isatty()


def _ask(text: str, prompt: str) -> str:
    """Show ``text`` and read the answer at ``prompt``. Raises ToolError when the input is closed."""
    if _output_is_seen():
        print(text)
    else:
        prompt = f"{text}\n{prompt}"
    try:
        return input(prompt).strip()
    except EOFError:
        raise ToolError("The user closed the input without an answer.") from None


def _ask_question(question: str, options: Sequence[str], allow_text: bool, multi: bool) -> str:
    asked = "\n".join([question, *(f"  {number}. {option}" for number, option in enumerate(options, 1))])
    hint = "numbers with commas between" if multi else "a number"
    prompt = "Your answer: " if not options else f"Your answer ({hint}{', or text' if allow_text else ''}): "
    while True:
        typed = _ask(asked, prompt)
        chosen = _chosen(typed, options, multi)
        if chosen is not None:
            return chosen
        if typed and (allow_text or not options):
            return typed
        asked = "That is none of the answers."


def _ask_plan(plan: str) -> bool | str:
    typed = _ask(plan, "y carry it out · n do not · or what to change: ")
    if typed.lower() in ("y", "yes"):
        return True
    if typed.lower() in ("", "n", "no"):
        return False
    return f"The user did not approve the plan yet, and wants a change: {typed}"


def _chosen(typed: str, options: Sequence[str], multi: bool) -> str | None:
    words = [word.strip() for word in typed.split(",")] if multi else [typed]
    if not all(word.isdecimal() and 1 <= int(word) <= len(options) for word in words):
        return None
    return ", ".join(options[int(word) - 1] for word in words)
