"""Keeping keys out of error messages and audit files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from zq_notebook.text import redact

# Servers like to show a key's beginning and end: "sk-proj-****************wxyz".
_STARRED = re.compile(r"[\w\-]*\*{3,}[\w\-*]*")


def mask_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` without ``secrets``, without parts of a key that a server printed, and without what looks like a key."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, redact.MASK)
    return _STARRED.sub(redact.MASK, redact.shared().redact(text))
