"""Files of every kind through the file tools: an answer or a clear error, nothing lost, nothing written elsewhere."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import resource
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from zq_notebook.toolio import ToolContext, ToolOutput
from zq_notebook.tools.files import register_file_tools, register_read_only_file_tools
from zq_notebook.tools.registry import ToolRegistry

Call = Callable[..., Awaitable[ToolOutput]]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    root.mkdir()
    return root


@pytest.fixture
def call(workspace: Path) -> Call:
    registry = ToolRegistry()
    register_file_tools(registry, workspace)

    async def run(name: str, ctx: ToolContext | None = None, /, **args: object) -> ToolOutput:
        return await registry.call(name, args, ctx or ToolContext())

    return run


def tree(root: Path) -> list[Path]:
    return sorted(root.rglob("*"))


def error_of(output: ToolOutput) -> str:
    assert not output.ok
    return str(json.loads(output.text)["error"])


# read_file


async def test_lines_come_with_their_numbers(workspace: Path, call: Call) -> None:
    (workspace / "f").write_text("one\ntwo\n")
    assert (await call("read_file", path="f")).text == "     1\tone\n     2\ttwo"


async def test_last_line_without_line_ending_is_read(workspace: Path, call: Call) -> None:
    (workspace / "f").write_text("one\ntwo")
    assert (await call("read_file", path="f")).text.endswith("     2\ttwo")


async def test_pages_say_where_they_are_and_how_to_go_on(workspace: Path, call: Call) -> None:
    (workspace / "f").write_text("".join(f"line {i}\n" for i in range(1, 101)))
    first = await call("read_file", path="f", limit=3)
    assert first.text.endswith("     3\tline 3\n[lines 1 to 3 of 100; go on with offset=4]")
    last = await call("read_file", path="f", offset=99)
    assert last.text == "    99\tline 99\n   100\tline 100\n[lines 99 to 100 of 100]"
    assert "has 100 lines; there is no line 101" in error_of(await call("read_file", path="f", offset=101))


async def test_every_page_of_a_large_file_joins_to_the_whole(workspace: Path, call: Call) -> None:
    lines = [f"{i} " + "x" * (i * 7 % 300) for i in range(1, 6001)]
    (workspace / "f").write_text("\n".join(lines))
    seen: list[str] = []
    for _ in range(200):
        output = await call("read_file", path="f", offset=len(seen) + 1)
        assert len(output.text) <= 30_000
        body = [line for line in output.text.splitlines() if "\t" in line]
        seen += [line.split("\t", 1)[1] for line in body]
        if len(seen) == len(lines):
            break
    assert seen == lines


async def test_empty_file_is_said_to_be_empty(workspace: Path, call: Call) -> None:
    (workspace / "f").write_text("")
    assert (await call("read_file", path="f")).text == "f is empty."


async def test_one_endless_line_is_read_by_bytes(workspace: Path, call: Call) -> None:
    (workspace / "f").write_text("a" * 10_000_000)
    started = time.perf_counter()
    output = await call("read_file", path="f")
    assert time.perf_counter() - started < 2
    assert len(output.text) < 3000
    assert "byte_offset" in output.text
    page = await call("read_file", path="f", byte_offset=9_999_990)
    assert page.text == "aaaaaaaaaa\n[bytes 9,999,990 to 10,000,000 of 10,000,000]"
    assert "there is nothing at" in error_of(await call("read_file", path="f", byte_offset=10_000_000))


async def test_sparse_gigabyte_takes_no_time_and_no_memory(workspace: Path, call: Call) -> None:
    (workspace / "f").touch()
    os.truncate(workspace / "f", 1024**3)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    output = await call("read_file", path="f")
    assert "nothing but zeros, 1,073,741,824 bytes" in output.text
    assert "32 MB" not in output.text
    assert "more than" in error_of(await call("replace_in_file", path="f", old="a", new="b"))
    assert "more than" in error_of(await call("write_file", path="f", content="x"))
    assert time.perf_counter() - started < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


async def test_offset_deep_in_a_large_file_is_quick(workspace: Path, call: Call) -> None:
    (workspace / "f").write_bytes(b"some ordinary line of text\n" * 3_000_000)
    started = time.perf_counter()
    output = await call("read_file", path="f", offset=2_999_999)
    assert output.text.count("some ordinary line") == 2
    assert time.perf_counter() - started < 3


@pytest.mark.parametrize(
    ("data", "expected", "note"),
    [
        ("grüße\n".encode(), "grüße", ""),
        (b"\xef\xbb\xbfx\n", "\tx", "byte order mark"),
        ("日本\n".encode("utf-16"), "日本", "utf-16-le"),
        (b"\xfe\xff" + "日本\n".encode("utf-16-be"), "日本", "utf-16-be"),
        ("x\n".encode("utf-32"), "\tx", "utf-32-le"),
        (b"caf\xe9\n", "café", "cp1252"),
        ("# -*- coding: koi8-r -*-\nпривет\n".encode("koi8-r"), "привет", "koi8-r"),
        ('<?xml version="1.0" encoding="iso-8859-2"?>\n<a>ž</a>\n'.encode("iso-8859-2"), "ž", "iso8859-2"),
        (b"a\r\nb\r\n", "     2\tb", "CRLF"),
        (b"a\rb\r", "     2\tb", "CR line endings"),
        (b"a\r\nb\nc\n", "     3\tc", ""),
        (b"form\x0cfeed\n", "form", ""),
    ],
)
async def test_encodings_are_recognised(workspace: Path, call: Call, data: bytes, expected: str, note: str) -> None:
    (workspace / "f").write_bytes(data)
    text = (await call("read_file", path="f")).text
    assert expected in text
    assert note in text
    assert ("[" in text) is bool(note)


async def test_character_across_the_sniffed_block_is_no_reason_to_doubt_utf8(workspace: Path, call: Call) -> None:
    (workspace / "f").write_bytes(b"a" * 65535 + "ü".encode() + b"\n")
    assert "cp1252" not in (await call("read_file", path="f")).text


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x7fELF\x02\x00", "ELF"),
        (b"PK\x03\x04\x00\x00", "ZIP"),
        (b"%PDF-1.7\n\x00", "PDF"),
        (b"\x00\x01\x02", "binary data"),
        (bytes(range(1, 32)) * 10, "binary data"),
    ],
)
async def test_binary_files_are_described(workspace: Path, call: Call, data: bytes, says: str) -> None:
    (workspace / "f").write_bytes(data)
    output = await call("read_file", path="f")
    assert output.ok
    assert says in output.text
    assert f"{len(data)} bytes" in output.text


async def test_picture_is_returned_as_a_picture(workspace: Path, call: Call) -> None:
    png = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + (640).to_bytes(4, "big") + (480).to_bytes(4, "big") + b"rest"
    (workspace / "p.png").write_bytes(png)
    output = await call("read_file", path="p.png")
    assert [(image.data, image.mime_type) for image in output.images] == [(png, "image/png")]
    assert "640×480" in output.text


async def test_what_is_not_a_file_is_refused_at_once(workspace: Path, call: Call) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "d").mkdir()
    (workspace / "loop").symlink_to("loop")
    for path, says in [
        ("pipe", "a pipe"),
        ("/dev/zero", "a device"),
        ("/dev/tty", ""),
        ("d", "is a directory"),
        ("missing", "There is no missing"),
        ("loop", "leads in a circle"),
        ("d/x/y", "There is no d/x/y"),
        ("a\0b", "NUL"),
        ("x" * 300, "too long"),
        ("", "is a directory"),
    ]:
        for name, args in (
            ("read_file", {}),
            ("write_file", {"content": "x"}),
            ("replace_in_file", {"old": "a", "new": "b"}),
        ):
            if name == "write_file" and path in ("missing", "d/x/y", "loop"):
                continue
            output = await call(name, path=path, **args)
            assert not output.ok, (name, path)
            if name == "read_file":
                assert says in error_of(output)


async def test_files_outside_may_be_read_but_not_written(tmp_path: Path, workspace: Path, call: Call) -> None:
    (tmp_path / "outside.txt").write_text("there")
    assert "there" in (await call("read_file", path="../outside.txt")).text
    assert "there" in (await call("read_file", path=str(tmp_path / "outside.txt"))).text
    for name, args in (("write_file", {"content": "x"}), ("replace_in_file", {"old": "there", "new": "x"})):
        assert "outside the workspace" in error_of(await call(name, path="../outside.txt", **args))
    assert (tmp_path / "outside.txt").read_text() == "there"


async def test_saved_result_can_be_read_back_and_is_not_saved_again(tmp_path: Path, workspace: Path) -> None:
    registry = ToolRegistry()
    register_file_tools(registry, workspace)
    long = "\n".join(f"row {i}" for i in range(20_000))
    registry.register(lambda args: long, {"category": "x"}, {"name": "big"})
    ctx = ToolContext(result_dir=tmp_path / "results", tool_call_id="call-1")
    output = await registry.call("big", {}, ctx)
    (saved,) = (tmp_path / "results").iterdir()
    assert str(saved) in output.text
    assert saved.stat().st_mode & 0o777 == 0o600
    assert saved.read_text() == long
    back = await registry.call("read_file", {"path": str(saved), "offset": 15_000}, ctx)
    assert "\trow 14999\n" in back.text
    assert list((tmp_path / "results").iterdir()) == [saved]


# list_files


async def test_listing_is_sorted_and_leaves_out_what_git_ignores(workspace: Path, call: Call) -> None:
    for name in ("b/x.py", "a.txt", "b/c/deep/deeper/y.py", "node_modules/m.js", "keep/z.log", "emoji 🎉"):
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (workspace / ".gitignore").write_text("node_modules/\n*.log\n")
    (workspace / ".git").mkdir()
    (workspace / "link").symlink_to("a.txt")
    (workspace / "circle").symlink_to(".")
    output = await call("list_files")
    assert output.text.splitlines() == [
        ".gitignore",
        "a.txt",
        "b/",
        "b/c/",
        "b/c/deep/",
        "b/x.py",
        "circle -> .",
        "emoji 🎉",
        "keep/",
        "link -> a.txt",
        "[3 levels deep]",
    ]
    assert "node_modules/m.js" in (await call("list_files", ignored=True)).text
    assert (await call("list_files", path="node_modules")).text.startswith("m.js")
    assert (await call("list_files", pattern="*.py")).text == "b/c/deep/deeper/y.py\nb/x.py"
    assert (await call("list_files", pattern="b/*.py")).text == "b/x.py"
    assert (await call("list_files", pattern="*.rs")).text == "Nothing in the workspace fits *.rs."
    assert "4 more left out" in (await call("list_files", limit=6)).text
    assert "is a file" in error_of(await call("list_files", path="a.txt"))
    assert "There is no nowhere" in error_of(await call("list_files", path="nowhere"))


async def test_listing_a_tree_of_great_depth_and_size_is_bounded(workspace: Path, call: Call) -> None:
    deep = workspace / Path(*["d"] * 600)
    deep.mkdir(parents=True)
    (deep / "bottom").write_text("")
    for i in range(1500):
        (workspace / f"f{i:04}").write_text("")
    output = await call("list_files", pattern="bottom")
    assert output.text.endswith("/d/bottom")
    output = await call("list_files", depth=1)
    assert len(output.text.splitlines()) == 501
    assert "1,001 more left out" in output.text


async def test_read_only_tools_are_just_those_two(workspace: Path) -> None:
    registry = ToolRegistry()
    register_read_only_file_tools(registry, workspace)
    assert registry.names() == ["read_file", "list_files"]
    assert all(registry.get(name).concurrent for name in registry.names())


# write_file


async def test_new_file_with_its_directories(workspace: Path, call: Call) -> None:
    ctx = ToolContext()
    output = await call("write_file", ctx, path="a/b/c.txt", content="one\ntwo\n")
    assert output.text == "Created a/b/c.txt: 2 lines, 8 bytes."
    assert (workspace / "a/b/c.txt").read_bytes() == b"one\ntwo\n"
    assert ctx.produced_files == [str(workspace / "a/b/c.txt")]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
async def test_new_file_follows_the_umask_which_other_threads_see_unchanged(
    workspace: Path, call: Call, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_umask = os.umask
    changes: list[int] = []
    before = set_umask(umask)
    try:
        monkeypatch.setattr(os, "umask", lambda mask: changes.append(mask) or set_umask(mask))
        await call("write_file", path="new.txt", content="x")
    finally:
        set_umask(before)
    assert (workspace / "new.txt").stat().st_mode & 0o777 == 0o666 & ~umask
    assert changes == []


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\r\nb\r\n", "x\r\ny\n", b"x\r\ny\n"),
        (b"a\r\nb\n", "x\ny\n", b"x\ny\n"),
        (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffx\n", b"\xef\xbb\xbfx\n"),
        ("a\n".encode("utf-16"), "日\n", "日\n".encode("utf-16")),
        (b"caf\xe9\n", "th\xe9\n", b"th\xe9\n"),
        (b"caf\xe9\n", "日\n", "日\n".encode()),
        (b"", "x\n", b"x\n"),
        (b"a\n", "", b""),
        (b"a\n", "no newline", b"no newline"),
        (b"\x00\x01", "text\n", b"text\n"),
        (b"a", "\ud800", "\ufffd".encode()),
    ],
)
async def test_replaced_content_keeps_the_files_ways(
    workspace: Path, call: Call, before: bytes, content: str, after: bytes
) -> None:
    (workspace / "f").write_bytes(before)
    output = await call("write_file", path="f", content=content)
    assert output.text.startswith("Overwrote f")
    assert (workspace / "f").read_bytes() == after


async def test_mode_is_kept_and_nothing_else_is_left(workspace: Path, call: Call) -> None:
    (workspace / "f.sh").write_text("a")
    (workspace / "f.sh").chmod(0o750)
    await call("write_file", path="f.sh", content="b")
    assert (workspace / "f.sh").stat().st_mode & 0o777 == 0o750
    assert os.listdir(workspace) == ["f.sh"]


async def test_link_inside_the_workspace_stays_a_link(workspace: Path, call: Call) -> None:
    (workspace / "real").write_text("a")
    (workspace / "link").symlink_to("real")
    await call("write_file", path="link", content="b")
    assert (workspace / "link").is_symlink()
    assert (workspace / "real").read_text() == "b"


@pytest.mark.parametrize(
    "path", ["out/x", "dangling", "chain/deep/x", "../x", "/tmp/zq-x", "~/x", "sub/../../x", "hard/../../x", "."]
)
async def test_nothing_is_written_outside(tmp_path: Path, workspace: Path, call: Call, path: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (workspace / "out").symlink_to(outside)
    (workspace / "chain").symlink_to("out")
    (workspace / "dangling").symlink_to(outside / "new")
    before = tree(tmp_path)
    assert not (await call("write_file", path=path, content="x")).ok
    assert tree(tmp_path) == before


async def test_hard_link_to_the_outside_is_not_written_through(tmp_path: Path, workspace: Path, call: Call) -> None:
    (tmp_path / "outside").write_text("mine")
    os.link(tmp_path / "outside", workspace / "f")
    await call("write_file", path="f", content="x")
    assert (tmp_path / "outside").read_text() == "mine"
    assert (workspace / "f").read_text() == "x"


async def test_directory_that_becomes_a_link_while_writing_leads_nowhere(
    tmp_path: Path, workspace: Path, call: Call
) -> None:
    """A directory is swapped for a link to the outside, over and over, while files are written into it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (workspace / "d").mkdir()
    (workspace / "evil").symlink_to(outside)
    stop = threading.Event()
    numbers = itertools.count()

    def swap() -> None:
        while not stop.is_set():
            # The tool makes the directory again when it is away, so that any of these may fail.
            for one, other in (("d", f"spare{next(numbers)}"), ("evil", "d"), ("d", "evil")):
                with contextlib.suppress(OSError):
                    os.rename(workspace / one, workspace / other)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        outcomes = list[bool]()
        while len(outcomes) < 300 or True not in outcomes:  # how often writing succeeds in between is up to chance
            outcomes.append((await call("write_file", path="d/f", content="x")).ok)
    finally:
        stop.set()
        thread.join()
    assert list(outside.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
async def test_read_only_file_is_not_replaced(workspace: Path, call: Call) -> None:
    (workspace / "f").write_text("a")
    (workspace / "f").chmod(0o444)
    assert "read-only" in error_of(await call("write_file", path="f", content="b"))


# ConflictGuard


async def test_file_changed_since_it_was_read_is_not_overwritten(workspace: Path, call: Call) -> None:
    file = workspace / "f"
    file.write_text("one\n")
    await call("read_file", path="f")
    status = file.stat()
    file.write_text("two\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    for name, args in (("write_file", {"content": "x"}), ("replace_in_file", {"old": "two", "new": "x"})):
        assert "Read it again" in error_of(await call(name, path="f", **args))
    assert file.read_text() == "two\n"
    await call("read_file", path="f")
    assert (await call("write_file", path="f", content="three\n")).ok
    assert (await call("write_file", path="f", content="four\n")).ok
    assert (await call("replace_in_file", path="f", old="four", new="five")).ok
    assert file.read_text() == "five\n"


async def test_touched_but_unchanged_file_is_no_conflict(workspace: Path, call: Call) -> None:
    (workspace / "f").write_text("one\n")
    await call("read_file", path="f")
    os.utime(workspace / "f", (1, 1))
    assert (await call("write_file", path="f", content="two\n")).ok


async def test_deleted_file_may_be_written_again(workspace: Path, call: Call) -> None:
    (workspace / "f").write_text("one\n")
    await call("read_file", path="f")
    (workspace / "f").unlink()
    assert (await call("write_file", path="f", content="two\n")).text.startswith("Created")


async def test_file_that_was_never_read_may_be_written_and_the_model_is_told(workspace: Path, call: Call) -> None:
    (workspace / "f").write_text("one\n")
    output = await call("write_file", path="f", content="two\n")
    assert output.ok
    assert "had not been read" in output.text


# replace_in_file


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a b c\n", "b", "X", b"a X c\n"),
        (b"a.b\naxb\n", "a.b", r"\1\g<0>", b"\\1\\g<0>\naxb\n"),
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\n"),
        (b"a\r\nb\nc\n", "b\nc", "x\ny", b"a\r\nx\ny\n"),
        (b"a\r\nb\nc\n", "a\nb", "x\ny", b"x\r\ny\nc\n"),
        (b"\xef\xbb\xbfa\n", "a", "b", b"\xef\xbb\xbfb\n"),
        ("ä日\n".encode("utf-16"), "日", "本", "ä本\n".encode("utf-16")),
        (b"caf\xe9 x\n", "x", "\xe8", b"caf\xe9 \xe8\n"),
        (b"no newline", "newline", "x", b"no x"),
        (b"remove me please", " me", "", b"remove please"),
    ],
)
async def test_replacement_changes_only_what_was_named(
    workspace: Path, call: Call, before: bytes, old: str, new: str, after: bytes
) -> None:
    (workspace / "f").write_bytes(before)
    output = await call("replace_in_file", path="f", old=old, new=new)
    assert output.ok, output.text
    assert (workspace / "f").read_bytes() == after


async def test_result_is_the_diff(workspace: Path, call: Call) -> None:
    (workspace / "f").write_text("a\nb\nc\n")
    output = await call("replace_in_file", path="f", old="b", new="B")
    assert output.text == "Replaced 1 occurrence in f.\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c"
    assert output.summary == "+1 −1"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"old": "x", "new": "y"}, "occurs 3 times in f (lines 1, 2, 4), not once"),
        ({"old": "x", "new": "y", "count": 2}, "not 2 times"),
        ({"old": "", "new": "y"}, "old is empty"),
        ({"old": "x", "new": "x"}, "are the same"),
        ({"old": "    retrun 1", "new": "y"}, "begins at line 3"),
        ({"old": "def  f():\n  return 1", "new": "y"}, "white space differs from lines 2 to 3"),
        ({"old": "     3\t    return 1", "new": "y"}, "without the line numbers"),
        ({"old": "utterly different", "new": "y"}, "No line resembles it"),
        ({"old": "  \n ", "new": "y"}, "white space only"),
    ],
)
async def test_failed_replacement_says_what_to_do(
    workspace: Path, call: Call, args: dict[str, object], says: str
) -> None:
    text = (
        "x\ndef f(): # x\n    return 1\nx\n" if "occurs" in says or "2 times" in says else "x\ndef f():\n    return 1\n"
    )
    (workspace / "f").write_text(text)
    assert says in error_of(await call("replace_in_file", path="f", **args))
    assert (workspace / "f").read_text() == text


async def test_several_occurrences_when_told(workspace: Path, call: Call) -> None:
    (workspace / "f").write_text("x x\n")
    assert "Replaced 2" in (await call("replace_in_file", path="f", old="x", new="y", count=2)).text
    assert "Replaced 2" in (await call("replace_in_file", path="f", old="y", new="z", replace_all=True)).text
    assert (workspace / "f").read_text() == "z z\n"


async def test_character_that_the_encoding_lacks_is_not_forced(workspace: Path, call: Call) -> None:
    (workspace / "f").write_bytes(b"caf\xe9\n")
    assert "cp1252" in error_of(await call("replace_in_file", path="f", old="caf", new="日"))
    assert (workspace / "f").read_bytes() == b"caf\xe9\n"
