"""What the notebook keeps of a turn."""

from __future__ import annotations

from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.transcript_html import transcript_html
from zq_notebook.notebook.transcript_markdown import transcript_markdown
from zq_notebook.notebook.transcript_plain import transcript_plain


def bundle(transcript: Transcript) -> dict[str, str]:
    """The transcript as ``text/markdown``, ``text/html`` and ``text/plain``: the same words in the same order."""
    return {
        "text/markdown": transcript_markdown(transcript),
        "text/html": transcript_html(transcript),
        "text/plain": transcript_plain(transcript),
    }
