"""The transcript as HTML that needs nothing else: it reads well with its style sheet, and without."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

from zq_notebook.notebook.arguments import Part, main_argument
from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.transcript_blocks import (
    Block,
    Footer,
    NoticeBlock,
    ReasoningBlock,
    TextBlock,
    ToolBlock,
)
from zq_notebook.notebook.transcript_lines import (
    Words,
    footer_left,
    footer_right,
    header_words,
    shown_arguments,
    shown_html,
    shown_result,
    tool_line,
    tool_mark,
)
from zq_notebook.notebook.transcript_pictures import image_source
from zq_notebook.notebook.words import thought_words
from zq_notebook.text.highlight import highlight
from zq_notebook.text.markdown import render_markdown
from zq_notebook.text.safe_html import sanitize_html
from zq_notebook.text.truncate import bytes_words
from zq_notebook.text.visible import make_visible
from zq_notebook.toolio import ImageData

_SEPARATOR = '<span class="zq-sep"> · </span>'


@lru_cache(maxsize=1)
def style_sheet() -> str:
    """The style sheet that the live view and the finished transcript share."""
    text = files("zq_notebook.notebook.view").joinpath("transcript.css").read_text(encoding="utf-8")
    return compact_css(text)


def compact_css(text: str) -> str:
    """A style sheet of ours without its comments and line breaks."""
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)).strip()


def transcript_html(transcript: Transcript) -> str:
    """The whole turn."""
    parts = [f'<div class="zq zq-done"><style>{style_sheet()}</style>']
    parts.append(
        f'<div class="zq-head">{_join(header_words(transcript.role, transcript.model, transcript.mode))}</div>'
    )
    parts += [block_html(block) for block in transcript.blocks]
    if transcript.footer is not None:
        parts.append(footer_html(transcript.footer))
    parts.append("</div>")
    return "\n".join(parts)


def block_html(block: Block) -> str:
    """One block of a finished transcript."""
    if isinstance(block, ReasoningBlock):
        return (
            f'<details class="zq-think"><summary>{thought_words(block.seconds)}</summary>'
            f'<div class="zq-prose">{render_markdown(block.text)}</div></details>'
        )
    if isinstance(block, TextBlock):
        return f'<div class="zq-prose">{render_markdown(block.text)}</div>'
    if isinstance(block, NoticeBlock):
        return notice_html(block)
    return tool_html(block)


def notice_html(notice: NoticeBlock) -> str:
    """A paragraph between the blocks."""
    return f'<p class="zq-notice zq-{notice.tone}">{_text(notice.text)}</p>'


def tool_html(tool: ToolBlock) -> str:
    """One line, folded unless it failed, and its pictures below it."""
    mark, state = tool_mark(tool)
    argument = main_argument(tool.arguments)
    line = f'<span class="zq-mark" role="img" aria-label="{state}">{mark}</span> <code>{_text(tool.name)}</code>'
    if argument:
        line += f' <span class="zq-arg">{_text(argument)}</span>'
    words = tool_line(tool)
    if words:
        line += f'{_SEPARATOR}<span class="zq-sum">{_text(" · ".join(words))}</span>'
    body = tool_body_html(tool)
    if not body:
        card = f'<div class="zq-tool zq-{tool.status}"><div class="zq-line">{line}</div></div>'
    else:
        opened = " open" if tool.status == "error" else ""
        card = (
            f'<details class="zq-tool zq-{tool.status}"{opened}><summary class="zq-line">{line}</summary>'
            f'<div class="zq-body">{body}</div></details>'
        )
    return card + "".join(image_html(image, tool.name) for image in tool.images)


def tool_body_html(tool: ToolBlock) -> str:
    """Arguments and result, as far as the tool's line does not already say them."""
    pieces = [part_html(part) for part in shown_arguments(tool)]
    own = shown_html(tool) if tool.finished else None
    if own is not None:
        pieces.append(f'<div class="zq-wide zq-result">{sanitize_html(own)}</div>')
    else:
        result = shown_result(tool)
        if result is not None:
            pieces.append(
                f'<pre class="zq-result">{highlight(result.text.rstrip(), result.language, prose=True)}</pre>'
            )
    return "".join(pieces)


def part_html(part: Part) -> str:
    """A titled piece of code, diff or text."""
    title = f'<div class="zq-title">{_text(part.title)}</div>' if part.title else ""
    if part.kind == "diff":
        return f'{title}<pre class="zq-code"><code>{diff_html(part.text)}</code></pre>'
    return f'{title}<pre class="zq-code"><code>{highlight(part.text.rstrip(chr(10)), part.language)}</code></pre>'


def diff_html(diff: str) -> str:
    """A unified diff; the signs stay, so that colour is not all there is."""
    lines = []
    for line in make_visible(diff.rstrip("\n")).split("\n"):
        kind = {"+": "i", "-": "x", "@": "h"}.get(line[:1], "")
        escaped = _text(line)
        lines.append(f'<span class="{kind}">{escaped}</span>' if kind else escaped)
    return "\n".join(lines)


def image_html(image: ImageData, tool_name: str) -> str:
    """A picture in the page itself, or a line that says why not."""
    source = image_source(image)
    if source is None:
        size = bytes_words(len(image.data))
        return f'<p class="zq-notice zq-info">A picture of {size} ({_text(image.mime_type)}) is not shown here.</p>'
    alt = html.escape(image.alt or f"Picture from {tool_name}")
    return f'<div class="zq-figure"><img src="{source}" alt="{alt}"></div>'


def footer_html(footer: Footer) -> str:
    """What changed on the left, what it took on the right."""
    used = footer_right(footer)
    right = f'{_SEPARATOR}<span class="zq-used">{_text(" · ".join(used))}</span>' if used else ""
    return f'<div class="zq-foot">{_join(footer_left(footer))}{right}</div>'


def _join(phrases: Iterable[Words]) -> str:
    return _SEPARATOR.join(f"<span>{words_html(words)}</span>" for words in phrases)


def words_html(words: Words) -> str:
    """A phrase with its bold words and code."""
    tags = {"b": "strong", "code": "code"}
    return "".join(f"<{tags[how]}>{_text(text)}</{tags[how]}>" if how in tags else _text(text) for text, how in words)


def _text(text: str) -> str:
    # A dollar sign by itself, or front ends take what stands between two of them for a formula.
    return html.escape(text, quote=False).replace("$", "<span>$</span>")
