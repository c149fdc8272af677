"""Reading, listing, writing and changing files (Manual §7.1, §7.3)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from zq_notebook.errors import ToolError
from zq_notebook.text.unicode import well_formed
from zq_notebook.toolio import ImageData, ToolContext, ToolOutput
from zq_notebook.tools import budget, file_schemas
from zq_notebook.tools.conflict import MAX_HASHED, ConflictGuard
from zq_notebook.tools.edit import read_existing, replacement, whole_file
from zq_notebook.tools.encoding import SNIFF_BYTES, TextStyle, sniff
from zq_notebook.tools.ignore import Glob, walk
from zq_notebook.tools.look import MAX_IMAGE_BYTES, describe_binary, image_size, image_type
from zq_notebook.tools.place import Workspace, explain, open_regular, write_atomically
from zq_notebook.tools.reading import Page, read_page
from zq_notebook.tools.registry import ToolMetadata, ToolRegistry
from zq_notebook.tools.replacing import change_summary, unified_diff

DEFAULT_LINES = 2000
DEFAULT_DEPTH = 3
MAX_ENTRIES = 500
_FOOTER_CHARS = 300
_READ = ToolMetadata(category="file", risk_level="low", capabilities=("read",), requires_approval=False)
_WRITE = ToolMetadata(category="file", risk_level="medium", capabilities=("write",), requires_approval=True)


class FileTools:
    """The file tools of one workspace, with the memory of what the agent has seen."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._guard = ConflictGuard()

    def read_file(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        """A page of a text file, a picture, or what another file is (Manual §7.1)."""
        place = self._workspace.find(str(args["path"]))
        shown = self._workspace.show(place)
        with open(open_regular(place, shown), "rb") as file:
            status = os.fstat(file.fileno())
            head = file.read(SNIFF_BYTES)
            mime = image_type(head)
            if mime is not None:
                return _picture(mime, head + file.read(MAX_IMAGE_BYTES + 1 - len(head)), status.st_size, shown)
            style = sniff(head, complete=len(head) < SNIFF_BYTES)
            if style is None:
                return ToolOutput(text=describe_binary(head, status.st_size, shown), summary="binary")
            if status.st_size <= MAX_HASHED:
                file.seek(0)
                self._guard.saw(place, status, file.read())
            else:
                self._guard.saw(place, status, None)
            room = max(budget.limit() - _FOOTER_CHARS, 100)
            if args.get("byte_offset") is not None:
                file.seek(int(args["byte_offset"]))
                return _bytes(file.read(room), style, int(args["byte_offset"]), status.st_size, shown)
            offset, limit = int(args.get("offset") or 1), int(args.get("limit") or DEFAULT_LINES)
            return _lines(read_page(file, style, offset, limit, room), style, offset, shown)

    def list_files(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        """Files and directories, in order, without what .gitignore leaves out (Manual §7.1)."""
        place = self._workspace.find(str(args.get("path") or "."))
        shown = self._workspace.show(place)
        if not place.is_dir():
            if not os.path.lexists(place):
                raise explain(FileNotFoundError(2, "No such file or directory"), shown)
            raise ToolError(f"{shown} is a file. Use read_file to read it.")
        pattern = args.get("pattern")
        depth = args.get("depth") or (None if pattern else DEFAULT_DEPTH)
        glob = Glob(str(pattern)) if pattern else None
        limit = int(args.get("limit") or MAX_ENTRIES)
        found: list[str] = []
        more = 0
        base = len(str(place).rstrip(os.sep)) + 1
        for entry in walk(place, self._workspace.root, ignored=bool(args.get("ignored")), depth=depth):
            if ctx.cancel.is_set():
                raise ToolError("Listing was stopped by the user.")
            relative = entry.path[base:].replace(os.sep, "/")
            is_dir = entry.is_dir(follow_symlinks=False)
            if glob is not None and (is_dir or not glob.matches(relative)):
                continue
            if len(found) >= limit:
                more += 1
                if more >= 100_000:
                    break
                continue
            found.append(_entry(entry, relative, is_dir=is_dir))
        return _listing(found, more, shown, pattern, depth)

    def write_file(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        """Create a file or replace all of its content (Manual §7.1)."""
        place = self._workspace.find_inside(str(args["path"]))
        shown = self._workspace.show(place)
        existing = self._existing(place, shown)
        known = existing is not None and self._guard.knows(place)
        edit = whole_file(existing, str(args["content"]))
        notes = ["it existed and had not been read"] if existing and not known else []
        if edit.note:
            notes.append(edit.note)
        self._write(place, edit.data, shown, ctx)
        verb = "Created" if existing is None else "Overwrote"
        lines = edit.after.count("\n") + (1 if edit.after and not edit.after.endswith("\n") else 0)
        note = f" ({'; '.join(notes)})" if notes else ""
        summary = f"{lines:,} line{'' if lines == 1 else 's'}, {len(edit.data):,} bytes"
        return ToolOutput(text=f"{verb} {shown}: {summary}{note}.", summary=summary)

    def replace_in_file(self, args: Mapping[str, Any], ctx: ToolContext) -> ToolOutput:
        """Replace a piece of text in a file (Manual §7.1)."""
        place = self._workspace.find_inside(str(args["path"]))
        shown = self._workspace.show(place)
        existing = self._existing(place, shown)
        if existing is None:
            raise ToolError(f"There is no {shown}. Use write_file to create it.")
        edit = replacement(existing, args, shown)
        self._write(place, edit.data, shown, ctx)
        diff = unified_diff(edit.before or "", edit.after, shown)
        return ToolOutput(
            text=f"Replaced {edit.times} occurrence{'' if edit.times == 1 else 's'} in {shown}.\n{diff}",
            summary=change_summary(diff),
        )

    def _existing(self, place: Path, shown: str) -> bytes | None:
        """The content that is about to be replaced, or ``None``. Refuses what changed since the agent saw it."""
        found = read_existing(place, shown)
        if found is None:
            return None
        content, status = found
        self._guard.check(place, status, content, shown)
        return content

    def _write(self, place: Path, data: bytes, shown: str, ctx: ToolContext) -> None:
        write_atomically(self._workspace, place, data, shown)
        self._guard.saw(place, os.stat(place), data if len(data) <= MAX_HASHED else None)
        ctx.record_file(place)


def _picture(mime: str, data: bytes, size: int, shown: str) -> ToolOutput:
    facts = f"{mime.removeprefix('image/').upper()}{image_size(data)}, {size:,} bytes"
    if size > MAX_IMAGE_BYTES:
        return ToolOutput(text=f"{shown} is a picture ({facts}), too large to be shown. Make a smaller copy with code.")
    return ToolOutput(
        text=f"{shown} is a picture ({facts}).", images=(ImageData(data, mime, os.path.basename(shown)),), summary=facts
    )


def _bytes(data: bytes, style: TextStyle, offset: int, size: int, shown: str) -> ToolOutput:
    """A page by bytes, for lines that are too long for a page by lines."""
    if not data:
        raise ToolError(f"{shown} has {size:,} bytes; there is nothing at {offset:,}.")
    end = offset + len(data)
    go_on = f"; go on with byte_offset={end}" if end < size else ""
    text = data.decode(style.encoding, "replace")
    return ToolOutput(text=f"{text}\n[bytes {offset:,} to {end:,} of {size:,}{go_on}]", summary=f"{len(data):,} bytes")


def _lines(page: Page, style: TextStyle, offset: int, shown: str) -> ToolOutput:
    """A page of numbered lines, and what to do to see more."""
    if not page.lines:
        if page.total == 0 and offset == 1:
            return ToolOutput(text=f"{shown} is empty.", summary="empty")
        raise ToolError(f"{shown} has {page.total:,} lines; there is no line {offset:,}.")
    last = page.lines[-1][0]
    notes = [style.note] if style.note else []
    if page.cut:
        numbers = ", ".join(str(number) for number in page.cut[:5]) + (" …" if len(page.cut) > 5 else "")
        notes.append(f"cut because they are long: lines {numbers}; read the file by bytes with byte_offset=0")
    if offset > 1 or page.total != last:
        of = f" of {page.total:,}" if page.total is not None else ", and many more follow"
        go_on = f"; go on with offset={last + 1}" if page.total != last else ""
        notes.append(f"lines {offset:,} to {last:,}{of}{go_on}")
    body = "\n".join(f"{number:>6}\t{line}" for number, line in page.lines)
    footer = f"\n[{'; '.join(notes)}]" if notes else ""
    count = len(page.lines)
    return ToolOutput(text=body + footer, summary=f"{count:,} line{'' if count == 1 else 's'}")


def _entry(entry: os.DirEntry[str], relative: str, *, is_dir: bool) -> str:
    if entry.is_symlink():
        try:
            return f"{relative} -> {os.readlink(entry.path)}"
        except OSError:
            return f"{relative} -> ?"
    return relative + "/" if is_dir else relative


def _listing(found: list[str], more: int, shown: str, pattern: object, depth: int | None) -> ToolOutput:
    where = "the workspace" if shown == "." else shown
    if not found:
        text = (
            f"Nothing in {where} fits {pattern}." if pattern else f"{where} is empty, or everything in it is ignored."
        )
        return ToolOutput(text=text, summary="0 entries")
    notes = []
    if more:
        notes.append(f"{more:,} more left out; give a pattern, a deeper path, or a limit")
    if depth is not None and not pattern:
        notes.append(f"{depth} levels deep")
    footer = f"\n[{'; '.join(notes)}]" if notes else ""
    return ToolOutput(text=well_formed("\n".join(found) + footer), summary=f"{len(found):,} entries")


def register_read_only_file_tools(registry: ToolRegistry, workspace: str | os.PathLike[str]) -> None:
    """Register ``read_file`` and ``list_files`` (Manual §7.3)."""
    _register_reading(registry, FileTools(Workspace(workspace)))


def register_file_tools(registry: ToolRegistry, workspace: str | os.PathLike[str]) -> None:
    """Register ``read_file``, ``list_files``, ``write_file`` and ``replace_in_file`` (Manual §7.1)."""
    tools = FileTools(Workspace(workspace))
    _register_reading(registry, tools)
    registry.register(tools.write_file, _WRITE, file_schemas.WRITE_FILE)
    registry.register(tools.replace_in_file, _WRITE, file_schemas.REPLACE_IN_FILE)


def _register_reading(registry: ToolRegistry, tools: FileTools) -> None:
    registry.register(tools.read_file, _READ, file_schemas.READ_FILE)
    registry.register(tools.list_files, _READ, file_schemas.LIST_FILES)
