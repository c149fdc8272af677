"""What the model is told in place of a tool's result."""

from __future__ import annotations

import json

INTERRUPTED = "Interrupted by the user before it finished."
RESULT_MISSING = "The result of this call was not kept."
APPROVAL_FAILED = "Not run: nobody could be asked for approval."
FINALIZE = (
    "The limit of iterations for this turn is reached and no more tools can be called. Answer now with what you have: "
    "what was found or done, and what is still open."
)


def denied_by_user(reason: str | None) -> str:
    """The user said no, with or without a reason."""
    text = "The user denied this call. Do not try to reach the same effect another way; adapt or ask."
    return f"{text} Reason given: {reason}" if reason else text


def denied_by_permissions(reason: str) -> str:
    """The permission engine said no."""
    return f"Denied: {reason}"


def failed(error: BaseException) -> str:
    """The call could not be carried out at all."""
    return json.dumps(
        {"error": str(error) or type(error).__name__, "error_type": type(error).__name__}, ensure_ascii=False
    )
