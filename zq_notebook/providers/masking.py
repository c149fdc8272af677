"""Keeping keys out of error messages and audit files."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "[hidden]"

_KEY_LIKE = re.compile(
    r"(?i)\b(?:sk|pk|rk|xai|gsk|key|ghp|gho|github_pat|hf|AIza|AKIA)[-_][A-Za-z0-9_\-*.]{6,}"
    r"|\bAIza[A-Za-z0-9_\-]{20,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
)
_BEARER = re.compile(r"(?i)\b(bearer|authorization:|api[-_]key[\"']?\s*[:=])\s+(?!bearer)[^\s,\"']{6,}")
_USERINFO = re.compile(r"(\w+://)[^/\s@]+@")


def mask_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """``text`` without the given secrets, and without anything that looks like a key or a password in an address."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, MASK)
    text = _KEY_LIKE.sub(MASK, text)
    text = _BEARER.sub(rf"\1 {MASK}", text)
    return _USERINFO.sub(rf"\1{MASK}@", text)
