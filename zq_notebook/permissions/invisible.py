"""Characters that a person reading a command would not see, or would see in another order."""

from __future__ import annotations

import re
import unicodedata

# Letters and marks that Unicode does not class as format characters and that still draw nothing.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_SUSPECT_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_PRINTABLE_ASCII = re.compile(r"[ -~]*")


def is_invisible(char: str) -> bool:
    """Whether ``char`` is a control, format, bidirectional, private, unassigned or blank character, or an odd space."""
    if " " <= char <= "~":
        return False
    kind = unicodedata.category(char)
    return (
        kind in _SUSPECT_CATEGORIES
        or kind == "Zs"
        or char in _BLANK
        or "\ufe00" <= char <= "\ufe0f"
        or "\u180b" <= char <= "\u180d"
        or "\U000e0100" <= char <= "\U000e01ef"
    )


def invisible_characters(text: str) -> list[str]:
    """The invisible characters of ``text`` as ``U+202E`` and the like, each once, in order of appearance."""
    if _PRINTABLE_ASCII.fullmatch(text):
        return []
    return list(dict.fromkeys(f"U+{ord(char):04X}" for char in text if is_invisible(char)))
