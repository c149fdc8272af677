"""A session to fill up: a scripted model, the real registry and permissions, events collected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from zq_notebook.engine import history
from zq_notebook.engine.events import Event
from zq_notebook.engine.turn import TurnEngine
from zq_notebook.errors import ContextOverflowError
from zq_notebook.permissions.decision import Mode, PermissionEngine
from zq_notebook.tools.registry import ToolMetadata, ToolRegistry

INTRO = "Notes on the earlier part of this conversation, which was removed to make room:"
READ = ToolMetadata(category="file", risk_level="low")


def registry_with(results: Mapping[str, Callable[[Mapping[str, Any]], Any]]) -> ToolRegistry:
    """Low-risk tools by name, each a function of its arguments."""
    registry = ToolRegistry()
    for name, function in results.items():

        def tool(args: Mapping[str, Any], ctx: Any, function: Callable[[Mapping[str, Any]], Any] = function) -> Any:
            return function(args)

        schema = {"type": "object", "properties": {}, "additionalProperties": True}
        registry.register(tool, READ, schema={"name": name, "description": name, "parameters": schema})
    return registry


def engine_with(provider: Any, root: Path, registry: ToolRegistry | None = None, **options: Any) -> TurnEngine:
    options = {"model": "m", "instructions": "Be brief.", **options}
    return TurnEngine(
        provider=provider,
        registry=registry or ToolRegistry(),
        permissions=PermissionEngine(workspace_root=root, mode=Mode.AUTO),
        **options,
    )


async def turn(engine: TurnEngine, text: str = "go on") -> list[Event]:
    events = [event async for event in engine.run(text, task_id="t1")]
    assert history.problems(engine.messages) == []
    return events


def types(events: Iterable[Event], *, deltas: bool = False) -> list[str]:
    return [e.type.value for e in events if deltas or not e.type.value.endswith("_delta")]


def one(events: Iterable[Event], kind: str) -> Any:
    found = [event for event in events if event.type == kind]
    assert len(found) == 1, f"{len(found)} events of {kind}"
    return found[0]


def talk(exchanges: int, characters: int = 400, *, start: int = 0) -> list[dict[str, Any]]:
    """So many questions and answers, each message of so many characters."""
    messages: list[dict[str, Any]] = []
    for number in range(start, start + exchanges):
        messages.append({"role": "user", "content": f"question {number} ".ljust(characters, "q")})
        messages.append({"role": "assistant", "content": f"answer {number} ".ljust(characters, "a")})
    return messages


def called(number: int, name: str, arguments: str, result: str) -> list[dict[str, Any]]:
    """One call and its result."""
    call = {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]


def system(text: str = "Be brief.") -> dict[str, Any]:
    return {"role": "system", "content": text}


def overflow() -> ContextOverflowError:
    return ContextOverflowError("The request is larger than the context window of m (400).", status=400, code="ctx")


def contents(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(message["content"]) for message in messages]
