"""Engines made of the real parts, and what every turn of theirs has to keep."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from zq_notebook.engine import history
from zq_notebook.engine.approval import Approver
from zq_notebook.engine.events import Event
from zq_notebook.engine.messages import StreamChunk, ToolCall
from zq_notebook.engine.ports import ProviderClient
from zq_notebook.engine.turn import TurnEngine
from zq_notebook.permissions.decision import Mode, PermissionEngine
from zq_notebook.providers.scripted import ScriptedProvider
from zq_notebook.tools.registry import ToolRegistry

Tool = Callable[..., Any]
ANY_OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}, "path": {"type": "string"}}}


def make_registry(low: Mapping[str, Tool] | None = None, high: Mapping[str, Tool] | None = None) -> ToolRegistry:
    """A tool table: ``low`` tools run at once and beside each other, ``high`` ones ask first."""
    registry = ToolRegistry()
    for risk, tools in (("low", low), ("high", high)):
        for name, func in (tools or {}).items():
            schema = {"name": name, "description": name, "parameters": ANY_OBJECT}
            registry.register(func, {"category": "test", "riskLevel": risk}, schema)
    return registry


def make_engine(
    steps: Iterable[Any] | ProviderClient,
    *,
    low: Mapping[str, Tool] | None = None,
    high: Mapping[str, Tool] | None = None,
    approver: Approver | None = None,
    mode: Mode = Mode.INTERACTIVE,
    workspace: str | Path = ".",
    **options: Any,
) -> TurnEngine:
    """A real engine with a real registry and permission engine; ``steps`` are a script or a provider."""
    provider = steps if hasattr(steps, "stream") else ScriptedProvider(steps)  # type: ignore[arg-type]
    engine = TurnEngine(
        provider=provider,  # type: ignore[arg-type]
        registry=make_registry(low, high),
        permissions=PermissionEngine(workspace_root=workspace, mode=mode),
        model="scripted",
        instructions="You are a test.",
        **options,
    )
    if approver is not None:
        engine.set_approver(approver)
    return engine


class Chunks:
    """A model that sends exactly these chunks, one list for each request."""

    def __init__(self, *replies: list[StreamChunk]) -> None:
        self.replies = list(replies)
        self.closed = 0

    async def stream(self, model: str, messages: Any, tools: Any, opts: Any) -> AsyncIterator[StreamChunk]:
        try:
            for chunk in self.replies.pop(0):
                yield chunk
        finally:
            self.closed += 1

    async def chat(self, *args: Any) -> str | None:
        return None


class Looping:
    """A model that asks ``times`` times for the tool ``look``, without ids, and keeps nothing of what it was asked."""

    def __init__(self, times: int) -> None:
        self.left = times

    async def stream(self, model: str, messages: Any, tools: Any, opts: Any) -> AsyncIterator[StreamChunk]:
        self.left -= 1
        if self.left >= 0:
            yield StreamChunk(tool_calls=[ToolCall("", "look", "{}")])
        else:
            yield StreamChunk(content="done", finish_reason="stop")

    async def chat(self, *args: Any) -> str | None:
        return None


async def drain(stream: AsyncIterator[Event]) -> list[Event]:
    """All events of a turn."""
    return [event async for event in stream]


async def play(engine: TurnEngine, text: str = "go", **options: Any) -> list[Event]:
    """One whole turn, checked."""
    events = await drain(engine.run(text, **options))
    check_turn(events, engine)
    return events


def types(events: Iterable[Event]) -> list[str]:
    """The types, with runs of equal deltas written once."""
    names: list[str] = []
    for event in events:
        if not (event.type.value.endswith("_delta") and names and names[-1] == event.type.value):
            names.append(event.type.value)
    return names


def of_type(events: Iterable[Event], name: str) -> list[Event]:
    """The events of one type."""
    return [event for event in events if event.type == name]


def statuses(events: Iterable[Event]) -> list[str]:
    """The status of each ``tool_finished``, in the order of the stream."""
    return [event.data["status"] for event in of_type(events, "tool_finished")]


def results(engine: TurnEngine) -> list[str]:
    """What the model was told about its calls."""
    return [str(message["content"]) for message in engine.messages if message["role"] == "tool"]


def check_history(engine: TurnEngine) -> None:
    """The invariant of a history."""
    assert history.problems(engine.messages) == []


def check_turn(events: list[Event], engine: TurnEngine) -> None:
    """What holds for every turn that was consumed to its end."""
    names = [event.type.value for event in events]
    assert names[0] == "turn_start"
    assert names[-1] == "turn_end"
    assert names.count("turn_end") == names.count("turn_start") == 1
    proposed = [event.data["reqId"] for event in of_type(events, "tool_proposed")]
    finished = [event.data["reqId"] for event in of_type(events, "tool_finished")]
    assert sorted(proposed) == sorted(finished)
    assert len(set(proposed)) == len(proposed)
    lives: dict[str, list[str]] = {call_id: [] for call_id in proposed}
    for event in events:
        if event.type.value in _LIFE:
            lives[event.data["reqId"]].append(event.type.value)
    for life in lives.values():
        assert life == [name for name in _LIFE if name in life], life
    assert not engine.busy
    check_history(engine)


_LIFE = ["tool_proposed", "permission_required", "tool_started", "tool_finished"]
_ID = re.compile(r"[0-9a-f]{16}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def wire(events: Iterable[Event]) -> list[tuple[str, dict[str, Any]]]:
    """Types and wire dictionaries with what differs from run to run replaced: ``R1`` …, ``TIME``, ``MS``."""
    ids: dict[str, str] = {}
    seen: list[tuple[str, dict[str, Any]]] = []
    for event in events:
        data = dict(event.data)
        for key, value in data.items():
            if key == "reqId" and _ID.fullmatch(value):
                data[key] = ids.setdefault(value, f"R{len(ids) + 1}")
            elif key in ("logTime", "startTime"):
                assert _TIME.fullmatch(value), value
                data[key] = "TIME"
            elif key == "duration":
                assert isinstance(value, int), value
                assert value >= 0
                data[key] = "MS"
        seen.append((event.type.value, data))
    return seen
