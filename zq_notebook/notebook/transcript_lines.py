"""Header, tool line and footer as words, before anyone decides whether they become HTML, markdown or plain text."""

from __future__ import annotations

import json
from collections.abc import Sequence

from zq_notebook.notebook.arguments import Part, argument_parts, main_argument
from zq_notebook.notebook.transcript_blocks import Footer, ToolBlock
from zq_notebook.notebook.words import (
    MARKS,
    STATES,
    cost_words,
    mode_words,
    seconds_words,
    tokens_words,
    turn_words,
)
from zq_notebook.text.truncate import clip_middle, shorten
from zq_notebook.text.visible import make_visible

# What a transcript keeps of one result or one argument, in characters; the session's log has the whole.
RESULT_LIMIT = 12_000
HTML_LIMIT = 200_000

Words = Sequence[tuple[str, str]]
"""Pieces of one phrase: text, and ``b`` (stands out), ``code`` or an empty string."""


def header_words(role: str, model: str, mode: str) -> list[Words]:
    """Who works, with which model, and how freely."""
    return [[(make_visible(role), "b")], [(make_visible(model), "")], [(mode_words(mode), "")]]


def usage_words(tokens: int | None, cost: float | None) -> list[str]:
    """Tokens and cost, as far as they are known."""
    words = [] if tokens is None else [tokens_words(tokens)]
    return words if cost is None else [*words, cost_words(cost)]


def tool_line(tool: ToolBlock, *, bare: bool = False) -> list[str]:
    """What stands at the end of a tool's line: state, answer, result in a few words, time.

    ``bare`` leaves out the time, and an answer that has a line of its own.
    """
    words = []
    if tool.status not in {"ok", "proposed", "denied"} or (tool.status == "denied" and not tool.note):
        words.append(STATES.get(tool.status, tool.status))
    if tool.note and not (bare and tool.reply):
        words.append(shorten(make_visible(tool.note, prose=True), 80))
    if tool.summary:
        words.append(shorten(make_visible(tool.summary, prose=True), 80))
    if not bare and tool.duration is not None and tool.finished and tool.status != "denied":
        words.append(seconds_words(tool.duration))
    return words


def tool_mark(tool: ToolBlock) -> tuple[str, str]:
    """The sign of the tool's state, and the state in words."""
    return MARKS.get(tool.status, "○"), STATES.get(tool.status, tool.status)


def shown_arguments(tool: ToolBlock) -> list[Part]:
    """The arguments that its line does not already show in full, each clipped with a note of how much is missing."""
    values = list(tool.arguments.values())
    if len(values) == 1 and values[0] == main_argument(tool.arguments):
        return []
    return [
        Part(part.kind, clip_middle(part.text, RESULT_LIMIT), part.title, part.language)
        for part in argument_parts(tool.arguments)
    ]


def shown_result(tool: ToolBlock) -> Part | None:
    """The result as text: what the tool means to show, or else what the model was given."""
    display = tool.display or {}
    text = display.get("text/plain") or tool.preview
    if tool.status == "denied" or not text.strip():
        return None
    pretty = _pretty(text)
    return Part("code", clip_middle(pretty, RESULT_LIMIT), language="json" if pretty is not text else "")


def shown_html(tool: ToolBlock) -> str | None:
    """The result as HTML of the tool's own, when it has some of a reasonable size."""
    source = (tool.display or {}).get("text/html")
    return source if source and len(source) <= HTML_LIMIT else None


def _pretty(text: str) -> str:
    if text[:1] not in "{[" or len(text) > RESULT_LIMIT:
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def footer_left(footer: Footer) -> list[Words]:
    """What the turn changed, and how it ended unless it simply ended."""
    words = list[Words]()
    if footer.status != "completed":
        words.append([(turn_words(footer.status), "b")])
    changed = [(name, "new") for name in footer.variables_new]
    changed += [(name, "changed") for name in footer.variables_changed]
    changed += [(name, "deleted") for name in footer.variables_deleted]
    words.append(_variables(changed) if changed else [("variables: unchanged", "")])
    if footer.files:
        files: list[tuple[str, str]] = [("files: ", "")]
        for number, name in enumerate(footer.files):
            files += [(", ", "")] * (number > 0) + [(make_visible(name), "code")]
        words.append(files)
    else:
        words.append([("files: none", "")])
    return words


def _variables(changed: Sequence[tuple[str, str]]) -> Words:
    shown = changed[:12]
    words: list[tuple[str, str]] = [("variables: ", "")]
    for number, (name, what) in enumerate(shown):
        following = shown[number + 1][1] if number + 1 < len(shown) else ""
        separator = "" if number == 0 else ", "
        words += [(separator, ""), (make_visible(name), "b")]
        if what != following:
            words.append((f" {what}", ""))
    if len(changed) > len(shown):
        words.append((f" and {len(changed) - len(shown)} more", ""))
    return [piece for piece in words if piece[0]]


def footer_right(footer: Footer) -> list[str]:
    """What the turn used: tokens, cost, time."""
    words = usage_words(footer.tokens, footer.cost)
    return words if footer.elapsed is None else [*words, seconds_words(footer.elapsed)]
