"""What passes between the engine and a tool: the context going in, the output coming back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from zq_notebook.cancel import CancelToken


class ImageData(msgspec.Struct, frozen=True):
    """A picture that a tool returns: ``data`` are the encoded bytes, ``mime_type`` says how."""

    data: bytes
    mime_type: str = "image/png"
    alt: str = ""


class ToolOutput(msgspec.Struct, kw_only=True):
    """What a tool gives back when a plain value is not enough.

    ``text`` goes to the model; ``images`` too, when the model can see. ``summary`` is a few words for the card
    ("DataFrame 48 210 × 9"), ``display`` a MIME bundle (``text/html``, ``text/plain``) that only people see.
    """

    text: str
    images: tuple[ImageData, ...] = ()
    ok: bool = True
    error_type: str | None = None
    summary: str | None = None
    display: Mapping[str, str] | None = None


class EmitEvent(Protocol):
    """Emit one engine event from inside a tool: the event's wire name, then its snake_case fields."""

    def __call__(self, event_type: str, /, **fields: Any) -> None: ...


def _emit_nothing(event_type: str, /, **fields: Any) -> None:
    """The default of a context made by hand: nobody listens."""


class ToolContext(msgspec.Struct, kw_only=True):
    """The second argument of a tool (Manual §7.2).

    ``cancel`` is set when the user stops the turn. ``handlers`` holds the engine's own question, plan and directory
    handlers, which win over the process-wide ones. ``result_dir`` is where results over budget are written, and is
    readable by ``read_file``. ``record_file(path)`` tells the engine that the tool wrote a file.
    """

    cancel: CancelToken = msgspec.field(default_factory=CancelToken)
    tool_call_id: str = ""
    name: str = ""
    task_id: str = ""
    handlers: Mapping[str, Callable[..., Any]] = msgspec.field(default_factory=dict)
    result_dir: Path | None = None
    emit: EmitEvent = _emit_nothing
    produced_files: list[str] = msgspec.field(default_factory=list)

    @property
    def signal(self) -> CancelToken:
        """The manual's name for :attr:`cancel`."""
        return self.cancel

    def record_file(self, path: str | Path) -> None:
        """Note that ``path`` was written, once however often it was."""
        name = str(path)
        if name not in self.produced_files:
            self.produced_files.append(name)
