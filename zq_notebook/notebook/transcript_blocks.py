"""The blocks that a turn's transcript is made of, in the order in which they happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec

from zq_notebook.engine.approval import ApprovalReply
from zq_notebook.toolio import ImageData


class Footer(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn left behind. ``cost`` is in US dollars, ``elapsed`` in seconds; ``None`` means not known."""

    status: str = "completed"
    files: Sequence[str] = ()
    variables_new: Sequence[str] = ()
    variables_changed: Sequence[str] = ()
    variables_deleted: Sequence[str] = ()
    tokens: int | None = None
    cost: float | None = None
    elapsed: float | None = None
    iterations: int = 0


class TextBlock:
    """A piece of the model's answer, in markdown."""

    kind: ClassVar[str] = "text"

    def __init__(self, block_id: int, text: str = "") -> None:
        self.id = block_id
        self.done = False
        self._pieces = [text] if text else []

    @property
    def text(self) -> str:
        """The whole text so far."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def append(self, text: str) -> None:
        """Add a delta, in constant time."""
        self._pieces.append(text)

    def replace(self, text: str) -> None:
        """Put another text in the place of what was streamed."""
        self._pieces = [text]


class ReasoningBlock(TextBlock):
    """A piece of the model's reasoning. ``seconds`` is how long it took, once it is over."""

    kind: ClassVar[str] = "reasoning"

    def __init__(self, block_id: int, started: float, text: str = "") -> None:
        super().__init__(block_id, text)
        self.started = started
        self.seconds: float | None = None


class ToolBlock(msgspec.Struct, kw_only=True):
    """One tool call. ``status`` is a key of :data:`words.STATES`; ``duration`` is in seconds."""

    kind: ClassVar[str] = "tool"
    id: int
    call_id: str
    name: str
    arguments: Mapping[str, Any] = msgspec.field(default_factory=dict)
    status: str = "proposed"
    note: str = ""
    reply: ApprovalReply | None = None
    reason: str = ""
    summary: str = ""
    preview: str = ""
    display: Mapping[str, str] | None = None
    images: Sequence[ImageData] = ()
    duration: float | None = None

    @property
    def finished(self) -> bool:
        """Whether the call has its result."""
        return self.status in {"ok", "error", "denied", "interrupted"}


class NoticeBlock(msgspec.Struct, kw_only=True):
    """Something that happened between the blocks: ``tone`` is ``info``, ``warning``, ``error`` or ``user``."""

    kind: ClassVar[str] = "notice"
    id: int
    tone: str
    text: str


Block = TextBlock | ToolBlock | NoticeBlock


class Change(msgspec.Struct, frozen=True):
    """What an event did to the transcript; ``text`` is what was appended when ``what`` is ``grow``."""

    what: Literal["add", "grow", "change", "remove"]
    block: Block
    text: str = ""
