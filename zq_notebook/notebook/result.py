"""What a turn in a notebook leaves behind for code: ``%%agent -o NAME`` and ``await zq_notebook.ask(…)``."""

from __future__ import annotations

import msgspec

from zq_notebook.engine.messages import TokenUsage
from zq_notebook.errors import AgentError


class TurnResult(msgspec.Struct, kw_only=True):
    """The outcome of one turn.

    ``text`` is the model's last answer; ``status`` is ``completed``, ``max_iterations_exceeded``, ``interrupted`` or
    ``error``; ``usage`` adds up the turn's requests in tokens; ``cost`` is in US dollars, ``None`` where the model's
    price is unknown; ``produced_files`` are the files that tools wrote; ``error`` is the paragraph of a failed turn.
    """

    text: str = ""
    status: str = "completed"
    iterations: int = 0
    usage: TokenUsage = msgspec.field(default_factory=TokenUsage)
    cost: float | None = None
    produced_files: list[str] = msgspec.field(default_factory=list)
    error: str | None = None

    def __str__(self) -> str:
        return self.text


class TurnError(AgentError):
    """A turn ended with ``status='error'``; ``result`` holds what there is. Raised so that Run All and CI stop here."""

    def __init__(self, message: str, error_type: str, result: TurnResult) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.result = result

    def _render_traceback_(self) -> list[str]:
        return [f"{self.error_type}: {self}"]
