"""Putting together the tool calls of a streamed Chat Completions reply.

Servers disagree about nearly everything here: an index that is always 0, an id on every fragment or on none, whole
calls in one piece, arguments as an object, the same id twice. What comes out is always a list of complete calls in
the order of their first fragments, each with an id of its own.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

import msgspec

from zq_notebook.engine.messages import ToolCall


def new_call_id() -> str:
    """An id for a call that came without one."""
    return f"call_{uuid.uuid4().hex[:24]}"


def is_complete_json(text: str) -> bool:
    """Whether ``text`` is one whole JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False


@dataclass
class _Call:
    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.arguments)


class CallAssembler:
    """Collects fragments with :meth:`add`; :meth:`calls` gives what they amount to."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def add(self, *, index: int | None, id: str | None, name: str | None, arguments: Any) -> None:
        """One fragment, with whatever the server put in it."""
        call = self._find(index, id or "", name or "")
        if call is None:
            call = _Call(index)
            self._calls.append(call)
        if id:
            call.id = id
        if name and name != call.name:
            # A name may come in pieces, before the arguments begin.
            call.name = name if call.arguments else call.name + name
        if isinstance(arguments, str):
            if arguments:
                call.arguments.append(arguments)
        elif arguments is not None:
            call.arguments.append(msgspec.json.encode(arguments).decode())

    def _find(self, index: int | None, id: str, name: str) -> _Call | None:
        """The call that a fragment belongs to, or ``None`` when it begins a new one."""
        if index is not None:
            same = [call for call in self._calls if call.index == index]
        elif id:
            same = [call for call in self._calls if call.id == id]
            return same[-1] if same else None
        else:
            same = self._calls[-1:]
        if not same:
            return None
        if id:
            by_id = [call for call in same if call.id == id]
            if by_id:
                return by_id[-1]
            return None if same[-1].id else same[-1]
        last = same[-1]
        begins = bool(name) and is_complete_json(last.text)
        return None if begins else last

    def calls(self) -> list[ToolCall]:
        """The complete calls; fragments that never got a name or arguments are left out."""
        made: list[ToolCall] = []
        taken: set[str] = set()
        for call in self._calls:
            if not call.name and not call.text.strip():
                continue
            id = call.id if call.id and call.id not in taken else new_call_id()
            taken.add(id)
            made.append(ToolCall(id, call.name, call.text if call.text.strip() else "{}"))
        return made
