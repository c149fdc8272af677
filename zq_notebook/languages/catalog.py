"""The six languages: which one to use, and its texts (Manual §20.1 "Prompts").

The texts are data: ``<lang>.toml`` beside this file, read when a language is first asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from zq_notebook.errors import UsageError

if TYPE_CHECKING:
    from zq_notebook.languages.tables import PromptSet
    from zq_notebook.languages.words import UiWords

PROMPT_LANGS: tuple[str, ...] = ("zh", "en", "zh-TW", "ja", "ko", "es")
DEFAULT_LANG = "en"


def resolve_lang(option: str | None = None) -> str:
    """The language to use: ``option``, else the variable ``ZQ_LANG``, else ``en``.

    Case and ``_`` for ``-`` do not matter. Returns one of :data:`PROMPT_LANGS`; raises :class:`UsageError` for any
    other language.
    """
    source = "lang" if option else "ZQ_LANG"
    wanted = (option or os.environ.get("ZQ_LANG") or "").strip() or DEFAULT_LANG
    for lang in PROMPT_LANGS:
        if lang.lower() == wanted.lower().replace("_", "-"):
            return lang
    raise UsageError(f"There is no language {wanted!r}. Set {source} to one of {', '.join(PROMPT_LANGS)}.")


@cache
def _load(lang: str) -> PromptSet:
    # Needed only here, and only once a turn or a card is due.
    import tomllib

    import msgspec

    from zq_notebook.languages.tables import PromptSet

    # importlib.resources would cost more than reading the file does.
    text = Path(__file__).with_name(f"{lang}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), PromptSet)


def get_prompts(lang: str | None = None) -> PromptSet:
    """All texts of a language (see :func:`resolve_lang`), read once per process."""
    return _load(resolve_lang(lang))


def get_ui(lang: str | None = None) -> UiWords:
    """The notebook's buttons and messages in a language (see :func:`resolve_lang`)."""
    return get_prompts(lang).ui


class _PromptSets(Mapping[str, "PromptSet"]):
    """Language → texts, each language read when it is asked for."""

    def __getitem__(self, lang: str) -> PromptSet:
        if lang not in PROMPT_LANGS:
            raise KeyError(lang)
        return _load(lang)

    def __iter__(self) -> Iterator[str]:
        return iter(PROMPT_LANGS)

    def __len__(self) -> int:
        return len(PROMPT_LANGS)


PROMPT_SETS: Mapping[str, PromptSet] = _PromptSets()
