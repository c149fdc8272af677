"""The transcript as plain text, for terminals."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from zq_notebook.notebook.arguments import main_argument
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
from zq_notebook.notebook.words import thought_words
from zq_notebook.text.truncate import bytes_words
from zq_notebook.text.visible import make_visible


def transcript_plain(transcript: Transcript) -> str:
    """The whole turn."""
    parts = [join_words(header_words(transcript.role, transcript.model, transcript.mode))]
    parts += [block_plain(block) for block in transcript.blocks]
    if transcript.footer is not None:
        parts.append(footer_plain(transcript.footer))
    return "\n\n".join(part for part in parts if part.strip()) + "\n"


def block_plain(block: Block, *, bare: bool = False) -> str:
    """One block; ``bare`` leaves out what differs from run to run. Nothing in it can steer a terminal."""
    if isinstance(block, ReasoningBlock):
        thoughts = textwrap.indent(make_visible(block.text.strip(), prose=True), "    ")
        return f"{thought_words(None if bare else block.seconds)}:\n{thoughts}"
    if isinstance(block, TextBlock | NoticeBlock):
        return make_visible(block.text.strip(), prose=True)
    return tool_plain(block, bare=bare)


def tool_plain(tool: ToolBlock, *, bare: bool = False) -> str:
    """The tool's line, its arguments and its result, indented."""
    lines = [tool_line_plain(tool, bare=bare)]
    for part in shown_arguments(tool):
        if part.title:
            lines.append(f"    {part.title}:")
        lines.append(textwrap.indent(make_visible(part.text.rstrip()), "    | ", lambda line: True))
    result = shown_result(tool)
    if result is not None:
        lines.append(textwrap.indent(make_visible(result.text.rstrip(), prose=True), "    "))
    # A bare transcript shows its pictures beside it; their sizes differ from one version of a library to the next.
    for image in () if bare else tool.images:
        lines.append(f"    [picture, {image.mime_type}, {bytes_words(len(image.data))}]")
    return "\n".join(lines)


def tool_line_plain(tool: ToolBlock, *, bare: bool = False) -> str:
    """``✓ run_code q = 1 · allowed once · 0.11 s``"""
    mark, _ = tool_mark(tool)
    argument = main_argument(tool.arguments)
    start = f"{mark} {tool.name} {argument}".rstrip()
    return " · ".join([start, *tool_line(tool, bare=bare)])


def footer_plain(footer: Footer, *, bare: bool = False) -> str:
    """What changed and what it took, on one line."""
    used = [] if bare else footer_right(footer)
    return " · ".join([join_words(footer_left(footer)), *used])


def join_words(phrases: Iterable[Words]) -> str:
    """Phrases without their emphasis."""
    return " · ".join("".join(text for text, _ in words) for words in phrases)
