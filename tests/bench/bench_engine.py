"""What the engine itself costs: per delta, per iteration with a tool, for blocking tools side by side.

The model is in this process, so that nothing but the engine is measured; medians of several rounds, CPU of this
process except where tools are waited for. Run with ``python tests/bench/bench_engine.py``.
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from tests.unit.engine.play import Looping, make_engine
from zq_notebook.engine.events import AssistantDelta, IterationEnd
from zq_notebook.engine.messages import StreamChunk, ToolCall

ROUNDS = 7
DELTAS = 5000
ITERATIONS = 50


class Talking:
    """A model that says ``DELTAS`` words; the loop turns once for each, as it does with a network."""

    async def stream(self, *args: Any) -> AsyncIterator[StreamChunk]:
        for _ in range(DELTAS):
            await asyncio.sleep(0)
            yield StreamChunk(content=" word")
        yield StreamChunk(finish_reason="stop")

    async def chat(self, *args: Any) -> str | None:
        return None


class EightCalls:
    """A model that asks for eight tools and then is done."""

    def __init__(self) -> None:
        self.asked = False

    async def stream(self, *args: Any) -> AsyncIterator[StreamChunk]:
        if not self.asked:
            self.asked = True
            yield StreamChunk(tool_calls=[ToolCall(f"c{n}", "look", "{}") for n in range(8)])
        else:
            yield StreamChunk(content="done", finish_reason="stop")

    async def chat(self, *args: Any) -> str | None:
        return None


async def bare_deltas() -> float:
    """CPU per chunk of the same model without an engine, in µs."""
    begun = time.process_time()
    async for _ in Talking().stream():
        pass
    return (time.process_time() - begun) / DELTAS * 1e6


async def deltas() -> float:
    """CPU per delta with every event delivered, in µs."""
    engine = make_engine(Talking())
    seen = 0
    begun = time.process_time()
    async for event in engine.run("go"):
        seen += isinstance(event, AssistantDelta)
    assert seen == DELTAS
    return (time.process_time() - begun) / DELTAS * 1e6


async def iterations() -> float:
    """CPU per iteration with one call of a synchronous tool, in ms."""
    engine = make_engine(Looping(ITERATIONS), low={"look": lambda args: "x"})
    begun = time.process_time()
    async for event in engine.run("go"):
        seen = event.iteration if isinstance(event, IterationEnd) else 0
        assert seen <= ITERATIONS + 1
    return (time.process_time() - begun) / ITERATIONS * 1e3


async def late_iterations() -> float:
    """How much dearer the last 100 of 1,000 iterations are than the first 100, in µs each."""
    engine = make_engine(Looping(1000), low={"look": lambda args: "x"}, max_iterations=1001)
    marks = [time.process_time()]
    async for event in engine.run("go"):
        if isinstance(event, IterationEnd):
            marks.append(time.process_time())
    return ((marks[1000] - marks[900]) - (marks[100] - marks[0])) / 100 * 1e6


async def blocking_tools() -> float:
    """Wall time of eight low-risk tools that block for 50 ms each, in ms."""
    engine = make_engine(EightCalls(), low={"look": lambda args: threading.Event().wait(0.05)})
    begun = time.perf_counter()
    async for _ in engine.run("go"):
        pass
    return (time.perf_counter() - begun) * 1e3


MEASURED: list[tuple[str, Callable[[], Awaitable[float]], str, float | None]] = [
    ("model alone, per chunk", bare_deltas, "µs CPU", None),
    ("per delta, all events delivered", deltas, "µs CPU", 35),
    ("per iteration of 50 tool calls", iterations, "ms CPU", 2.5),
    ("last of 1,000 iterations against the first", late_iterations, "µs CPU more", None),
    ("8 blocking tools of 50 ms", blocking_tools, "ms", 75),
]


def main() -> None:
    rounds: dict[str, list[float]] = {name: [] for name, *_ in MEASURED}
    for _ in range(ROUNDS):
        for name, measure, *_ in MEASURED:
            rounds[name].append(asyncio.run(measure()))  # type: ignore[arg-type]
    print(f"median of {ROUNDS} rounds")
    for name, _, unit, target in MEASURED:
        aim = f"   to reach: ≤ {target:g}" if target is not None else ""
        print(f"{name:<45}{statistics.median(rounds[name]):>9.2f} {unit}{aim}")


if __name__ == "__main__":
    main()
