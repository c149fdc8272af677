"""Characters that nobody sees, made visible, so that what a person approves is what will run."""

from __future__ import annotations

import re
import unicodedata

# Letters and symbols by category that most fonts draw as nothing at all.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800\u3164\uffa0")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})
# What ordinary prose and data use: no-break and thin spaces, the joiners and selectors of emoji and of some scripts.
_ORDINARY = re.compile("[\u00a0\u1680\u2000-\u200a\u200c\u200d\u202f\u205f\ufe00-\ufe0f]")


def is_hidden(char: str, *, prose: bool = False) -> bool:
    """Whether :func:`make_visible` writes ``char`` as a number: a control, format, bidirectional, private or unassigned
    character, a blank letter, or an unusual space."""
    if char in "\n\t" or (prose and _ORDINARY.match(char)):
        return False
    category = unicodedata.category(char)
    if category in _HIDDEN_CATEGORIES or char in _BLANK:
        return True
    if category == "Zs":
        return char not in " \u3000"
    return category == "Mn" and ("\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef")


def make_visible(text: str, *, prose: bool = False) -> str:
    """``text`` with invisible, control and bidirectional characters written as ``⟨U+202E⟩``.

    Newlines, tabs, spaces and the ideographic space stay; ``\\r\\n`` counts as a newline. Unusual spaces (no-break,
    en, em …) are shown too, since a shell and Python treat them differently from a space; in ``prose`` they stay, and
    so do the joiners and selectors that emoji are made of.
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return "".join(f"⟨U+{ord(char):04X}⟩" if is_hidden(char, prose=prose) else char for char in text)
