"""What a card says before anything happens: all of it, and honestly."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from zq_notebook.engine.approval import PermissionRequest
from zq_notebook.notebook.view.approval import ApprovalCard, approval_card


def card(tool: str, workspace: Path, metadata: Any = None, **arguments: Any) -> ApprovalCard:
    asked = PermissionRequest(
        tool_name=tool, arguments=arguments, metadata=metadata, reason="needs approval", tool_call_id="c1"
    )
    return approval_card(asked, workspace=workspace)


def test_code_is_shown_whole_with_what_it_touches(tmp_path: Path) -> None:
    shown = card("run_code", tmp_path, code="x = 1\n" * 500)
    assert shown.title == "Allow `run_code` to run this code?"
    assert shown.why == "Runs in your kernel, outside any sandbox. It cannot be undone automatically."
    assert shown.parts[0].text == "x = 1\n" * 500
    assert "needs approval" in shown.plain_body()


def test_a_command_says_where_how_long_and_in_the_background(tmp_path: Path) -> None:
    shown = card("run_shell", tmp_path, command="make test", timeout=60, background=True)
    assert f"in `{tmp_path}`, in the background, for 60 s at most." in shown.why
    assert [part.text for part in shown.parts] == ["make test"]


def test_no_argument_is_left_out(tmp_path: Path) -> None:
    for tool, arguments in (
        ("run_shell", {"command": "ls", "env": {"A": "surprise"}}),
        ("run_shell", {"command": "ls", "timeout": "surprise", "background": "surprise"}),
        ("run_code", {"code": "1", "other": "surprise"}),
        ("replace_in_file", {"path": "a", "old": "b", "new": "c", "all": "surprise"}),
        ("write_file", {"path": "a", "content": "b", "mode": "surprise"}),
        ("replace_in_file", {"path": "a", "old": "b", "new": "c", "flags": "surprise"}),
        ("mcp__server__tool", {"anything": "surprise"}),
        ("own_tool", {"deep": [{"er": "surprise"}]}),
        ("write_file", {"path": "a", "content": {"not": "surprise"}}),
        ("run_code", {"code": ["surprise"]}),
    ):
        assert "surprise" in card(tool, tmp_path, **arguments).plain_body(), tool


def test_a_new_file_is_shown_whole(tmp_path: Path) -> None:
    shown = card("write_file", tmp_path, path="new.py", content="x = 1\n")
    assert shown.title == "Allow `write_file` to create `new.py`?"
    assert "delete the file" in shown.why
    assert (shown.parts[0].text, shown.parts[0].language) == ("x = 1\n", "python")


def test_a_changed_file_is_shown_as_a_diff(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one\ntwo\nthree\n")
    shown = card("write_file", tmp_path, path="a.py", content="one\n2\nthree\n")
    assert shown.title == "Allow `write_file` to replace `a.py`?"
    assert shown.parts[0].text == "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"


def test_a_replacement_is_shown_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"line {n}\n" for n in range(50)))
    shown = card("replace_in_file", tmp_path, path="a.txt", old="line 30", new="LINE 30")
    assert "-line 30\n+LINE 30\n" in shown.parts[0].text
    assert "line 10" not in shown.parts[0].text


def test_a_replacement_that_will_fail_says_why_and_shows_both_texts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("somewhere\n")
    shown = card("replace_in_file", tmp_path, path="a.txt", old="some where", new="y")
    assert "this will fail: old was not found in a.txt" in shown.why
    assert [part.text for part in shown.parts] == ["some where", "y", "     1\tsomewhere"]


def test_a_text_found_more_than_once_fails_unless_so_many_are_meant(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\nx\nx\n")
    assert "occurs 3 times" in card("replace_in_file", tmp_path, path="a.txt", old="x", new="y").why
    assert "in 3 places" in card("replace_in_file", tmp_path, path="a.txt", old="x", new="y", count=3).why


def test_what_cannot_be_compared_is_said_and_nothing_hangs(tmp_path: Path) -> None:
    (tmp_path / "b.bin").write_bytes(b"\x7fELF\x00")
    assert "are not text" in card("write_file", tmp_path, path="b.bin", content="x").why
    (tmp_path / "large.txt").write_text("x\n" * 300_000)
    assert "600 kB, too large to be compared" in card("write_file", tmp_path, path="large.txt", content="x").why
    os.mkfifo(tmp_path / "pipe")
    assert "fail: pipe is a pipe" in card("write_file", tmp_path, path="pipe", content="x").why
    assert card("write_file", tmp_path, path="nul\0byte", content="x").parts[0].text == "x"


def test_a_path_that_leads_elsewhere_says_where(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("x")
    (tmp_path / "link").symlink_to("real")
    for path in ("link/a.txt", f"file://{tmp_path}/real/a.txt"):
        shown = card("write_file", tmp_path, path=path, content="y")
        assert shown.why.startswith(f"The path leads to `{tmp_path}/real/a.txt`. Replaces a file."), path
    assert "leads to" not in card("write_file", tmp_path, path="./real/../real/a.txt", content="y").why


def test_keys_are_masked_but_looked_for_as_they_are(tmp_path: Path) -> None:
    key = "sk-proj-" + "Ab3" * 16
    (tmp_path / "a.py").write_text(f"client = OpenAI('{key}')\n")
    shown = card("replace_in_file", tmp_path, path="a.py", old=f"'{key}'", new="")
    assert "Changes a file in 1 place" in shown.why
    assert "+client = OpenAI()" in shown.parts[0].text
    assert key not in shown.plain_body() + str(shown.request.arguments)


def test_hidden_characters_and_backticks_cannot_disguise_a_name(tmp_path: Path) -> None:
    shown = card("write_file", tmp_path, path="a`\u202etxt.py", content="x")
    assert "`a⟨U+0060⟩⟨U+202E⟩txt.py`" in shown.title


def test_a_text_of_more_than_200_kb_says_its_size_and_where_the_whole_is(tmp_path: Path) -> None:
    code = "x" * 300_000 + "the end"
    shown = card("run_code", tmp_path, code=code)
    assert "300 kB in all" in shown.parts[0].title
    assert shown.parts[0].text.endswith("the end")
    path = tmp_path / ".agent" / "approvals" / "c1-1.txt"
    assert str(path) in shown.parts[0].title
    assert path.read_text() == code


def test_other_tools_are_told_by_their_risk(tmp_path: Path) -> None:
    assert "Reaches outside" in card("fetch", tmp_path, {"riskClass": "external"}, url="https://example.org").why
    assert "not known here" in card("mcp__a__b", tmp_path, x=1).why
