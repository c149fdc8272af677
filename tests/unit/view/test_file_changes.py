"""What the card shows is what the tool does: the same change, or the same refusal."""

from __future__ import annotations

import codecs
import json
import re
from pathlib import Path
from typing import Any

import pytest

from zq_notebook.engine.approval import PermissionRequest
from zq_notebook.notebook.view.approval import ApprovalCard, approval_card
from zq_notebook.toolio import ToolContext
from zq_notebook.tools.encoding import sniff
from zq_notebook.tools.files import register_file_tools
from zq_notebook.tools.registry import ToolRegistry

LONG = "".join(f"line {number}\n" for number in range(60))
FILES: dict[str, bytes] = {
    "plain.txt": LONG.encode(),
    "open_end.txt": b"one\ntwo",
    "crlf.txt": LONG.replace("\n", "\r\n").encode(),
    "mixed.txt": b"one\r\ntwo\nthree\r\n",
    "bom.txt": codecs.BOM_UTF8 + LONG.encode(),
    "utf16.txt": codecs.BOM_UTF16_LE + LONG.replace("\n", "\r\n").encode("utf-16-le"),
    "latin.txt": "größer\nkleiner\n".encode("cp1252"),
    "separators.txt": "one\x0ctwo\u2028three\nfour\n".encode(),
    "empty.txt": b"",
}
Arguments = dict[str, Any]
CALLS: list[tuple[str, Arguments]] = [
    *(("write_file", {"path": name, "content": LONG.replace("line 9", "LINE 9")}) for name in FILES),
    *(("replace_in_file", {"path": name, "old": "line 9\nline 10", "new": "both\nof them"}) for name in FILES),
    ("write_file", {"path": "new/deep/a.txt", "content": "x = 1"}),
    ("write_file", {"path": "empty.txt", "content": ""}),
    ("write_file", {"path": "latin.txt", "content": "größer\n日本\n"}),
    ("write_file", {"path": "plain.txt", "content": "lone \ud800 surrogate\n"}),
    ("write_file", {"path": "link.txt", "content": LONG + "more\n"}),
    ("write_file", {"path": "file://{root}/plain.txt", "content": LONG + "more\n"}),
    ("write_file", {"path": "{root}/../outside.txt", "content": "x"}),
    ("write_file", {"path": "away.txt", "content": "x"}),
    ("write_file", {"path": "folder", "content": "x"}),
    ("replace_in_file", {"path": "missing.txt", "old": "a", "new": "b"}),
    ("replace_in_file", {"path": "plain.txt", "old": "line", "new": "row"}),
    ("replace_in_file", {"path": "plain.txt", "old": "line", "new": "row", "count": 60}),
    ("replace_in_file", {"path": "plain.txt", "old": "line", "new": "row", "count": 59}),
    ("replace_in_file", {"path": "utf16.txt", "old": "line 1", "new": "a\nb", "replace_all": True}),
    ("replace_in_file", {"path": "plain.txt", "old": "line 1", "new": "", "replace_all": True, "count": 2}),
    ("replace_in_file", {"path": "mixed.txt", "old": "two\nthree", "new": "2\n3"}),
    ("replace_in_file", {"path": "open_end.txt", "old": "two", "new": "2\n"}),
    ("replace_in_file", {"path": "latin.txt", "old": "größer", "new": "日本"}),
    ("replace_in_file", {"path": "separators.txt", "old": "three", "new": "3"}),
    ("replace_in_file", {"path": "plain.txt", "old": "same", "new": "same"}),
    ("replace_in_file", {"path": "link.txt", "old": "line 5\n", "new": ""}),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    workspace = tmp_path / "ws"
    (workspace / "folder").mkdir(parents=True)
    for name, content in FILES.items():
        (workspace / name).write_bytes(content)
    (workspace / "link.txt").symlink_to("plain.txt")
    (workspace / "away.txt").symlink_to(tmp_path / "outside.txt")
    return workspace


def text_of(data: bytes) -> str:
    style = sniff(data, complete=True)
    assert style is not None
    return style.decode(data)


def patched(before: str, diff: str) -> str:
    """``before`` with a unified diff applied, each line of its context checked."""
    lines, result, at = re.findall(r"[^\n]*\n|[^\n]+", before), list[str](), 0
    shown = re.sub(r"\n\\ no newline at the end of the file\n", "\x00", diff)
    for line in re.findall(r"[^\n\x00]*[\n\x00]", shown):
        sign, text = line[0], line[1:].rstrip("\x00")
        if sign == "@":
            first, length = re.findall(r"-(\d+)(?:,(\d+))?", line)[0]
            start = int(first) - (length != "0")
            result += lines[at:start]
            at = start
            continue
        if sign in " -":
            assert lines[at] == text
            at += 1
        if sign in " +":
            result.append(text)
    return "".join(result + lines[at:])


def card_for(tool: str, arguments: Arguments, root: Path) -> ApprovalCard:
    request = PermissionRequest(tool_name=tool, arguments=arguments, metadata=None, reason="", tool_call_id="c1")
    return approval_card(request, workspace=root)


@pytest.mark.parametrize(("tool", "template"), CALLS)
async def test_the_card_shows_exactly_what_the_tool_then_does(root: Path, tool: str, template: Arguments) -> None:
    arguments = {
        key: value.replace("{root}", str(root)) if isinstance(value, str) else value for key, value in template.items()
    }
    path = str(arguments["path"]).removeprefix("file://")
    before = (root / path).read_bytes() if (root / path).is_file() else None
    card = card_for(tool, arguments, root)
    registry = ToolRegistry()
    register_file_tools(registry, root)
    output = await registry.call(tool, arguments, ToolContext())
    if not output.ok:
        said = str(json.loads(output.text)["error"]).partition("\n")[0]
        assert card.why.startswith("As things are now this will fail: ")
        assert said.startswith(card.why.removeprefix("As things are now this will fail: "))
        return
    after = text_of((root / path).read_bytes())
    (part,) = card.parts
    if part.kind == "code":
        assert part.text == after
        assert ("Creates" in card.why) == (before is None)
    else:
        assert before is not None
        assert patched(text_of(before), part.text) == after


async def test_a_path_in_the_home_directory_is_the_file_there(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root))
    card = card_for("write_file", {"path": "~/plain.txt", "content": "x"}, root)
    assert card.title == "Allow `write_file` to replace `~/plain.txt`?"
    assert card.why.startswith(f"The path leads to `{root}/plain.txt`. Replaces a file.")
