"""Characters that a person reading a command would not see, or would see in another order."""

from __future__ import annotations

from zq_notebook.text.visible import is_hidden

# Shown as they are in any text, but easily taken for a space, which they are not (or not to every shell).
_LIKE_A_SPACE = "\t\n\u3000"


def invisible_characters(text: str) -> list[str]:
    """The invisible characters of ``text`` as ``U+202E`` and the like, each once, in order of appearance."""
    if text.isascii() and text.isprintable():
        return []
    hidden = (char for char in text if is_hidden(char) or char in _LIKE_A_SPACE)
    return list(dict.fromkeys(f"U+{ord(char):04X}" for char in hidden))
