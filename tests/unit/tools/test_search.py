"""grep: ripgrep and Python find the same, and say clearly what is wrong (Manual §7.1)."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from zq_notebook.cancel import CancelToken
from zq_notebook.errors import ToolError
from zq_notebook.toolio import ToolContext
from zq_notebook.tools import ripgrep
from zq_notebook.tools.query import Query
from zq_notebook.tools.registry import ToolRegistry
from zq_notebook.tools.search import find, register_search_tool

RG = ripgrep.find_ripgrep()
PROGRAMS = [pytest.param(RG, id="ripgrep", marks=pytest.mark.skipif(RG is None, reason="no ripgrep")), None]

FILES: dict[str, bytes] = {
    ".gitignore": b"*.log\n/build/\nnode_modules\n!keep.log\n",
    "a.py": b"import os\nx = 1\nprint(x)\n",
    "b.txt": b"hello World\nworld\r\nfoo(bar)\nfoo\n",
    "no_newline.txt": b"world at the end",
    "skip.log": b"world\n",
    "keep.log": b"world\n",
    "build/out.py": b"world\n",
    "sub/build/in.py": b"world deep\n",
    "sub/.gitignore": b"*.tmp\n!b.tmp\n",
    "sub/a.tmp": b"world\n",
    "sub/b.tmp": b"world\n",
    "sub/c.py": b"def world():\n    return 1\n\n\n\nworld()\n",
    "node_modules/x.js": b"world\n",
    ".hidden/x.txt": b"world\n",
    "binary.bin": b"world\0world\n",
    "late.bin": b"world\n" * 20_000 + b"\0",
    "bom.txt": b"\xef\xbb\xbfworld with a mark\n",
    "utf16.txt": "world wide\nsecond\n".encode("utf-16"),
    "latin.txt": b"caf\xe9 world\n",
    "emoji \xf0\x9f\x8e\x89.txt".encode("latin-1").decode("utf-8"): "world 🎉 ü\n".encode(),
    "long.txt": b"x" * 5000 + b"world" + b"y" * 5000 + b"\n",
    "empty.txt": b"",
    "sp ace/d.py": b"world\n",
    "[odd]/e.py": b"world\n",
}


@pytest.fixture(params=["plain", "git"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / ".gitignore").write_text("*\n")
    (root / "link.txt").symlink_to("b.txt")
    os.mkfifo(root / "pipe")
    if request.param == "git":
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        (root / ".git" / "info" / "exclude").write_text("b.txt\n")
    return root


QUERIES = [
    {"pattern": "world"},
    {"pattern": "world", "ignore_case": True},
    {"pattern": "^world"},
    {"pattern": "world$"},
    {"pattern": "foo(bar)", "literal": True},
    {"pattern": "foo(bar)"},
    {"pattern": r"\bfoo\b"},
    {"pattern": "world", "context": 1},
    {"pattern": "world", "context": 3, "globs": ("*.py",)},
    {"pattern": "world", "mode": "files"},
    {"pattern": "world", "mode": "count"},
    {"pattern": "world", "globs": ("*.py",)},
    {"pattern": "world", "globs": ("!*.py",)},
    {"pattern": "world", "globs": ("sub/**/*.py",)},
    {"pattern": "world", "globs": ("/sub/*.py",)},
    {"pattern": "world", "globs": ("*.log",)},
    {"pattern": "world", "globs": ("*",)},
    {"pattern": "world", "ignored": True},
    {"pattern": "é", "ignore_case": True},
    {"pattern": "ü"},
    {"pattern": r"wo(?=rld)"},
    {"pattern": r"(o)r\1?"},
    {"pattern": "-x"},
    {"pattern": "nothing like it"},
]
PLACES = [".", "sub", "sub/build", "build", "b.txt", "node_modules/x.js", "binary.bin", "[odd]", "sp ace"]


@pytest.mark.skipif(RG is None, reason="no ripgrep")
@pytest.mark.parametrize("place", PLACES)
def test_python_finds_what_ripgrep_finds(workspace: Path, place: str) -> None:
    for fields in QUERIES:
        query = Query(place=workspace / place, workspace=workspace, cancel=CancelToken(), **fields)
        by_ripgrep = sorted(find(query, RG), key=lambda item: item.path)
        by_python = sorted(find(query, None), key=lambda item: item.path)
        assert [(item.path, item.count) for item in by_python] == [(item.path, item.count) for item in by_ripgrep], (
            fields
        )
        for one, other in zip(by_python, by_ripgrep, strict=True):
            assert [(line.number, line.hit, line.text.strip("\r\n")) for line in one.lines] == [
                (line.number, line.hit, line.text.strip("\r\n")) for line in other.lines
            ], fields


@pytest.mark.parametrize("program", PROGRAMS)
def test_ignored_binary_and_git_files_are_left_out(workspace: Path, program: str | None) -> None:
    found = find(Query(pattern="world", place=workspace, workspace=workspace, cancel=CancelToken()), program)
    paths = {item.path for item in found}
    assert {"b.txt", "keep.log", "sub/b.tmp", "sub/build/in.py", ".hidden/x.txt", "utf16.txt", "latin.txt"} <= paths
    assert not paths & {"skip.log", "build/out.py", "node_modules/x.js", "binary.bin", "late.bin", "sub/a.tmp"}


@pytest.fixture(params=["ripgrep", "python"])
def registry(request: pytest.FixtureRequest, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> ToolRegistry:
    if request.param == "python":
        monkeypatch.setattr(ripgrep, "find_ripgrep", lambda path=None: None)
    elif RG is None:
        pytest.skip("no ripgrep")
    made = ToolRegistry()
    register_search_tool(made, workspace)
    return made


async def grep(registry: ToolRegistry, **args: object):
    return await registry.call("grep", args, ToolContext())


async def test_result_names_file_line_and_text(registry: ToolRegistry) -> None:
    output = await grep(registry, pattern="foo", glob="*.txt")
    assert output.text == "b.txt:3:foo(bar)\nb.txt:4:foo\n[2 matches in 1 file]"
    assert output.summary == "2 matches in 1 file"


async def test_context_is_marked_and_separated(registry: ToolRegistry) -> None:
    output = await grep(registry, pattern="world", path="sub/c.py", context=1)
    assert output.text.splitlines()[:6] == [
        "sub/c.py:1:def world():",
        "sub/c.py-2-    return 1",
        "--",
        "sub/c.py-5-",
        "sub/c.py:6:world()",
        "[2 matches in 1 file]",
    ]


async def test_modes_and_limit(registry: ToolRegistry) -> None:
    files = await grep(registry, pattern="world", mode="files", path="sub")
    assert files.text == "sub/b.tmp\nsub/build/in.py\nsub/c.py"
    counts = await grep(registry, pattern="world", mode="count", path="sub")
    assert counts.text == "sub/b.tmp:1\nsub/build/in.py:1\nsub/c.py:2"
    cut = await grep(registry, pattern="world", path="sub", limit=2)
    assert cut.text.splitlines()[:2] == ["sub/b.tmp:1:world", "sub/build/in.py:1:world deep"]
    assert "there are more: 4 matches in 3 files" in cut.text


async def test_long_line_is_cut_around_the_match(registry: ToolRegistry) -> None:
    output = await grep(registry, pattern="world", path="long.txt")
    assert "world" in output.text
    assert len(output.text) < 700


async def test_no_match_is_an_answer(registry: ToolRegistry) -> None:
    output = await grep(registry, pattern="nothing like it")
    assert (output.ok, output.text) == (True, "No matches.")


@pytest.mark.parametrize("pattern", ["foo(", "[z-a]", "(?P<x", "\\"])
async def test_invalid_pattern_is_explained(registry: ToolRegistry, pattern: str) -> None:
    output = await grep(registry, pattern=pattern)
    assert not output.ok
    assert "literal=true" in output.text


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"pattern": ""}, "pattern"),
        ({"pattern": "a\nb"}, "one line"),
        ({"pattern": "x", "path": "missing"}, "There is no missing"),
        ({"pattern": "x", "path": "pipe"}, "neither a file nor a directory"),
        ({"pattern": "x", "path": "a\0b"}, "NUL"),
        ({"pattern": "x", "mode": "lines"}, "content"),
    ],
)
async def test_unusable_arguments_are_explained(registry: ToolRegistry, args: dict[str, object], says: str) -> None:
    output = await grep(registry, **args)
    assert not output.ok
    assert says in output.text


@pytest.mark.parametrize("program", PROGRAMS)
def test_stopped_search_ends(workspace: Path, program: str | None) -> None:
    cancel = CancelToken()
    cancel.set()
    with pytest.raises(ToolError, match="stopped"):
        find(Query(pattern="world", place=workspace, workspace=workspace, cancel=cancel), program)


def test_many_matches_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "many.txt").write_bytes(b"match\n" * 400_000)
    query = Query(pattern="match", place=tmp_path, workspace=tmp_path, cancel=CancelToken())
    for program in {RG, None}:
        started = time.perf_counter()
        found = find(query, program)
        assert time.perf_counter() - started < 10
        assert all(len(item.lines) <= query.limit + 1 for item in found)
