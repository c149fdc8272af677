"""What an approval card says: what will happen to what, what that touches, and everything that will run."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from zq_notebook.engine.approval import PermissionRequest
from zq_notebook.notebook.arguments import Part, argument_parts, pretty_json, quoted
from zq_notebook.notebook.view.file_changes import file_change
from zq_notebook.text.redact import shared
from zq_notebook.text.truncate import bytes_words
from zq_notebook.text.visible import make_visible

# Beyond this a card shows both ends, and says where the whole is.
MAX_SHOWN = 200_000


class ApprovalCard(msgspec.Struct, frozen=True, kw_only=True):
    """One question. ``title`` and ``why`` have code in backticks; ``parts`` is the whole of what would happen."""

    tool_call_id: str
    tool_name: str
    title: str
    why: str
    reason: str = ""
    parts: Sequence[Part] = ()
    can_always_command: bool = False
    request: PermissionRequest

    def plain_body(self) -> str:
        """Everything below the title as plain text, for a question at the keyboard."""
        lines = [self.why.replace("`", "")]
        if self.reason:
            lines.append(f"Asked because: {make_visible(self.reason)}")
        for part in self.parts:
            if part.title:
                lines.append(part.title)
            lines.append(textwrap.indent(make_visible(part.text.rstrip("\n")), "    "))
        return "\n".join(lines)


def approval_card(
    request: PermissionRequest,
    *,
    workspace: Path,
    can_always_command: bool = False,
) -> ApprovalCard:
    """The card for ``request``, with keys masked.

    ``workspace`` is where relative paths start; a text over 200,000 characters is written whole to
    ``.agent/approvals`` in it, and the card says where. Reads the file that would be changed; never raises for what it
    finds there.
    """
    masked = msgspec.structs.replace(request, arguments=shared().redact_data(request.arguments))
    title, why, parts = _content(request, masked.arguments, workspace)
    name = request.tool_call_id or request.tool_name
    directory = workspace / ".agent" / "approvals"
    return ApprovalCard(
        tool_call_id=name,
        tool_name=request.tool_name,
        title=title,
        why=why,
        reason=request.reason,
        parts=[_bounded(part, directory, f"{name}-{number}") for number, part in enumerate(parts, 1)],
        can_always_command=can_always_command,
        request=masked,
    )


def _content(request: PermissionRequest, arguments: Mapping[str, Any], workspace: Path) -> tuple[str, str, list[Part]]:
    """Title, second line and body; ``arguments`` are those of ``request`` with keys masked."""
    name = request.tool_name
    if name == "run_code" and isinstance(arguments.get("code"), str):
        return _code(name, arguments)
    if name == "run_shell" and isinstance(arguments.get("command"), str):
        return _command(name, arguments, workspace)
    if name in {"write_file", "replace_in_file"} and isinstance(arguments.get("path"), str):
        # What is looked for in the file is what the call says, keys and all; they are masked in what comes of it.
        change, mask = file_change(name, request.arguments, workspace), shared().redact
        title = f"Allow {quoted(name)} to {change.verb} {quoted(mask(change.path))}?"
        return title, mask(change.why), [msgspec.structs.replace(part, text=mask(part.text)) for part in change.parts]
    if name.startswith("mcp__"):
        why = "Runs on a server outside this notebook. What it changes there is not known here."
        return f"Allow {quoted(name)} to run with these arguments?", why, argument_parts(arguments)
    return f"Allow {quoted(name)} to run?", _touches(request.metadata), argument_parts(arguments)


def _code(name: str, arguments: Mapping[str, Any]) -> tuple[str, str, list[Part]]:
    rest = {key: value for key, value in arguments.items() if key != "code"}
    parts = [Part("code", str(arguments["code"]), language="ipython3")]
    if rest:
        parts.append(Part("code", pretty_json(rest), language="json"))
    why = "Runs in your kernel, outside any sandbox. It cannot be undone automatically."
    return f"Allow {quoted(name)} to run this code?", why, parts


def _command(name: str, arguments: Mapping[str, Any], workspace: Path) -> tuple[str, str, list[Part]]:
    rest = {key: value for key, value in arguments.items() if key != "command"}
    where = rest.pop("cwd", None)
    background = rest.pop("background") if isinstance(rest.get("background"), bool) else False
    limit = rest.get("timeout")
    why = f"Runs on this computer with your rights, outside any sandbox, in {quoted(str(where or workspace))}"
    if background:
        why += ", in the background"
    if isinstance(limit, int | float) and not isinstance(limit, bool):
        del rest["timeout"]
        why += f", for {limit:g} s at most"
    parts = [Part("code", str(arguments["command"]), language="bash")]
    if rest:
        parts.append(Part("code", pretty_json(rest), language="json"))
    return f"Allow {quoted(name)} to run this command?", f"{why}. It cannot be undone automatically.", parts


_RISKS = {
    "read": "Only reads.",
    "write": "Changes files. It cannot be undone automatically.",
    "execute": "Runs on this computer with your rights. It cannot be undone automatically.",
    "external": "Reaches outside this computer. What it does there cannot be taken back.",
}


def _touches(metadata: Any) -> str:
    risk = getattr(metadata, "risk_class", None)
    if risk is None and isinstance(metadata, Mapping):
        risk = metadata.get("risk_class") or metadata.get("riskClass")
    return _RISKS.get(str(risk), "What it touches is not known here. It cannot be undone automatically.")


def _bounded(part: Part, directory: Path, name: str) -> Part:
    if len(part.text) <= MAX_SHOWN:
        return part
    size = bytes_words(len(part.text.encode("utf-8", "replace")))
    safe = "".join(char if char.isalnum() or char in "-_" else "_" for char in name)[:80]
    path = directory / f"{safe}.txt"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(part.text, encoding="utf-8", errors="replace")
        where = f"The whole text is in {path}."
    except OSError as error:
        where = f"The whole text could not be written to {path} ({error.strerror})."
    half = MAX_SHOWN // 2
    missing = len(part.text) - 2 * half
    text = f"{part.text[:half]}\n… {missing:,} characters are not shown …\n{part.text[-half:]}"
    title = f"{part.title + ' ' if part.title else ''}{size} in all; only both ends are shown. {where}"
    return Part(part.kind, text, title, part.language)
