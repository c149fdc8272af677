"""The words of cards, transcript and footer, in one place so that they are the same everywhere."""

from __future__ import annotations

from zq_notebook.engine.approval import ApprovalOutcome, ApprovalReply

_MODES = {
    "discuss": "reads only",
    "plan": "reads only, then plans",
    "interactive": "asks before acting",
    "auto": "acts without asking",
}

MARKS = {
    "proposed": "○",
    "waiting": "?",
    "running": "●",
    "ok": "✓",
    "error": "✗",
    "denied": "⊘",
    "interrupted": "■",
}
"""One sign per state of a tool call; the state is always said in words too."""

STATES = {
    "proposed": "proposed",
    "waiting": "waiting for you",
    "running": "running",
    "ok": "done",
    "error": "failed",
    "denied": "denied",
    "interrupted": "interrupted",
}

_TURN_STATES = {
    "completed": "done",
    "max_iterations_exceeded": "stopped at the iteration limit",
    "interrupted": "interrupted",
    "error": "ended with an error",
}


def mode_words(mode: str) -> str:
    """A permission mode as a clause: ``interactive`` is "asks before acting"."""
    return _MODES.get(str(mode), str(mode))


def turn_words(status: str) -> str:
    """The status of a finished turn."""
    return _TURN_STATES.get(status, status.replace("_", " "))


def seconds_words(seconds: float) -> str:
    """A duration in seconds as people read it: ``0.02 s``, ``14 s``, ``2 min 5 s``."""
    if seconds < 0.995:
        return f"{max(seconds, 0.01):.2f} s"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def thought_words(seconds: float | None) -> str:
    """The line that stands for folded reasoning; ``None`` leaves the time out."""
    return "Thought" if seconds is None else f"Thought for {max(round(seconds), 1)} s"


def tokens_words(tokens: int) -> str:
    """``812 tokens``, ``3.1k tokens``, ``1.2M tokens``."""
    if tokens < 1000:
        return "1 token" if tokens == 1 else f"{tokens} tokens"
    if tokens < 999_950:
        return f"{tokens / 1000:.1f}k tokens"
    return f"{tokens / 1_000_000:.1f}M tokens"


def cost_words(dollars: float) -> str:
    """``$0.004``, ``$1.20``; less than a tenth of a cent is said to be so."""
    if dollars <= 0:
        return "$0"
    if dollars < 0.001:
        return "under $0.001"
    return f"${dollars:.3f}" if dollars < 0.1 else f"${dollars:.2f}"


ALLOWED_EARLIER = "allowed earlier"
"""Stands on the line of a call that an earlier answer covers."""


def approval_words(reply: ApprovalReply) -> str:
    """What was answered: "allowed once", "denied: not this table"."""
    if reply.outcome == ApprovalOutcome.DENY:
        return f"denied: {reply.reason}" if reply.reason else "denied"
    if reply.outcome == ApprovalOutcome.ALWAYS_TOOL:
        return "tool always allowed"
    if reply.outcome == ApprovalOutcome.ALWAYS_COMMAND:
        return "command always allowed"
    return "allowed once"


def approval_sentence(tool_name: str, reply: ApprovalReply) -> str:
    """The same as a line of its own, for output that has no cards."""
    reason = f": {reply.reason.rstrip('.')}" if reply.reason else ""
    if reply.outcome == ApprovalOutcome.DENY:
        return f"Denied `{tool_name}`{reason}."
    scope = {
        ApprovalOutcome.ONCE: f"Allowed `{tool_name}` once",
        ApprovalOutcome.ALWAYS_TOOL: f"Always allowed `{tool_name}`",
        ApprovalOutcome.ALWAYS_COMMAND: f"Always allowed this command of `{tool_name}`",
    }[ApprovalOutcome(reply.outcome)]
    return f"{scope}{reason}."
