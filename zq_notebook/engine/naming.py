"""A name for the session, made by the model from how it began (Manual §6.2, §20.1)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zq_notebook.engine.clock import new_id, timestamp
from zq_notebook.engine.messages import text_of
from zq_notebook.engine.ports import StreamOptions
from zq_notebook.engine.summary import refuses_effort
from zq_notebook.text import logs

if TYPE_CHECKING:
    from zq_notebook.engine.turn import TurnEngine

logger = logs.logger("zq_notebook.engine")

NAME_CHARS = 60
_MATERIAL_CHARS = 2000
# Room for a model that thinks before it answers; the name itself needs a tenth of it.
_NAME_TOKENS = 300
_MARKUP = re.compile(r"\*+|`+|~~+|^\s*(?:#+|>|-|\d+\.)\s+")
_LABEL = re.compile(r"^(?:session name|title|name)\s*[:：]\s*", re.IGNORECASE)
_QUOTES = " \t_\"'“”„‘’«»「」『』《》〈〉"
_CLOSING = _QUOTES + ".。,，:：;；…-–—"


async def suggest_session_name(engine: TurnEngine) -> str | None:
    """A name for the engine's session: one line, at most 60 characters, no quotes and no markdown.

    ``None`` when nothing has been said yet, or when the model gave no name; a failure is logged, never raised.
    """
    said = next((text for m in engine.messages if m.get("role") == "user" and (text := text_of(m).strip())), "")
    if not said or not engine.model:
        return None
    asked = [
        {"role": "system", "content": engine.gen_session_name_prompt or engine.texts.session.naming},
        {"role": "user", "content": said[:_MATERIAL_CHARS]},
    ]
    try:
        try:
            answer = await _ask(engine, asked, "low")
        except Exception as error:
            if not refuses_effort(error):
                raise
            answer = await _ask(engine, asked, None)
    except Exception:
        logger.info("the session could not be named", exc_info=True)
        return None
    return sanitize_session_name(answer or "")


async def _ask(engine: TurnEngine, asked: Sequence[Mapping[str, Any]], effort: str | None) -> str | None:
    opts = StreamOptions(req_id=new_id(), log_time=timestamp(), reasoning_effort=effort)
    options = {"reasoning_effort": effort} if effort else None
    return await engine.provider.chat(engine.model, asked, options, opts, {"max_tokens": _NAME_TOKENS})


def sanitize_session_name(text: str) -> str | None:
    """The first line of ``text`` that holds a name, cleaned and cut to 60 characters; ``None`` when there is none."""
    for line in text.splitlines():
        visible = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in line)
        # Characters that change the direction of text, or show nothing, have no place in a list of sessions.
        visible = "".join(c for c in visible if unicodedata.category(c) not in ("Cf", "Cs", "Co", "Cn"))
        name = " ".join(_MARKUP.sub("", visible).split())
        name = _LABEL.sub("", name.lstrip(_QUOTES)).lstrip(_QUOTES).rstrip(_CLOSING)
        if name:
            return _cut(name)
    return None


def _cut(name: str) -> str:
    if len(name) <= NAME_CHARS:
        return name
    whole_words = name[: NAME_CHARS + 1].rpartition(" ")[0]
    return (whole_words if len(whole_words) > NAME_CHARS // 2 else name[:NAME_CHARS]).rstrip(_CLOSING)
