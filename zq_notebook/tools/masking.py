"""Keys do not reach the model, the log or the notebook through what a tool returns."""

from __future__ import annotations

from zq_notebook.text.redact import shared
from zq_notebook.toolio import ToolOutput


def masked(output: ToolOutput) -> ToolOutput:
    """``output`` with every known secret, and every text shaped like a key, replaced by ``[redacted]``."""
    redact = shared().redact
    output.text = redact(output.text)
    if output.summary is not None:
        output.summary = redact(output.summary)
    if output.display is not None:
        output.display = {kind: redact(text) for kind, text in output.display.items()}
    return output
