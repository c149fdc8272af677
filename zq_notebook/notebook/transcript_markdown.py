"""The transcript as markdown, for GitHub, diffs and programs that convert notebooks."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

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
    shown_result,
    tool_line,
    tool_mark,
)
from zq_notebook.notebook.transcript_pictures import image_source
from zq_notebook.notebook.words import thought_words
from zq_notebook.text.markdown_safe import safe_markdown
from zq_notebook.text.truncate import bytes_words
from zq_notebook.text.visible import make_visible


def transcript_markdown(transcript: Transcript) -> str:
    """The whole turn."""
    parts = [header_markdown(transcript.role, transcript.model, transcript.mode)]
    parts += [block_markdown(block) for block in transcript.blocks]
    if transcript.footer is not None:
        parts.append(f"---\n\n{footer_markdown(transcript.footer)}")
    return "\n\n".join(part for part in parts if part.strip()) + "\n"


def header_markdown(role: str, model: str, mode: str) -> str:
    """Who works, with which model, and how freely."""
    return _join(header_words(role, model, mode))


def block_markdown(block: Block, *, bare: bool = False, images: bool = True) -> str:
    """One block; ``bare`` leaves out what differs from run to run, ``images=False`` the pictures."""
    if isinstance(block, ReasoningBlock):
        return _details(thought_words(None if bare else block.seconds), [safe_markdown(block.text.strip())])
    if isinstance(block, TextBlock):
        return safe_markdown(block.text.strip())
    if isinstance(block, NoticeBlock):
        return "> " + _escape(block.text).replace("\n", "  \n> ")
    return tool_markdown(block, bare=bare, images=images)


def tool_markdown(tool: ToolBlock, *, bare: bool = False, images: bool = True) -> str:
    """One line, and arguments and result folded under it."""
    mark, _ = tool_mark(tool)
    argument = main_argument(tool.arguments)
    words = [f"{mark} <code>{html.escape(tool.name)}</code>{' ' if argument else ''}{html.escape(argument)}"]
    words += [html.escape(word) for word in tool_line(tool, bare=bare)]
    line = " · ".join(words)
    body = [part_markdown(part) for part in shown_arguments(tool)]
    result = shown_result(tool)
    if result is not None:
        body.append(fence(make_visible(result.text.rstrip(), prose=True), result.language))
    pieces = [_details(line, body) if body else line]
    if images:
        pieces += [_image(image_source(image), image.alt, tool.name, len(image.data)) for image in tool.images]
    return "\n\n".join(pieces)


def part_markdown(part: Part) -> str:
    """A titled code fence."""
    title = f"{part.title}:\n\n" if part.title else ""
    return title + fence(make_visible(part.text.rstrip("\n")), "diff" if part.kind == "diff" else part.language)


def fence(text: str, language: str = "") -> str:
    """``text`` in a fence that nothing in it can close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language.replace('ipython3', 'python')}\n{text}\n{ticks}"


def footer_markdown(footer: Footer, *, bare: bool = False) -> str:
    """What changed and what it took, on one line."""
    used = [] if bare else footer_right(footer)
    return " · ".join([_join(footer_left(footer)), *used])


def _details(line: str, body: Iterable[str]) -> str:
    return f"<details><summary>{line}</summary>\n\n" + "\n\n".join(body) + "\n\n</details>"


def _image(source: str | None, alt: str, tool_name: str, size: int) -> str:
    if source is None:
        return f"> A picture of {bytes_words(size)} is not shown here."
    label = re.sub(r"[\[\]\\<>]", "", alt or f"Picture from {tool_name}")
    return f"![{label}]({source})"


def _join(phrases: Iterable[Words]) -> str:
    return " · ".join("".join(_word(text, how) for text, how in words) for words in phrases)


def _word(text: str, how: str) -> str:
    if how == "b":
        return f"**{_escape(text)}**"
    if how == "code":
        return f"<code>{html.escape(text, quote=False)}</code>"
    return _escape(text)


def _escape(text: str) -> str:
    """Our own words as markdown that shows them as they are."""
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", text)
