"""Events of a small turn, and a front end in Python that understands the messages of a cell."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from zq_notebook.engine import events as ev
from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.view.cell_stream import CellStream
from zq_notebook.toolio import ImageData, ToolOutput

CODE = 'total = 41 + 1\nprint("done")\ntotal'
PNG = b"\x89PNG\r\n\x1a\n"


def request(req_id: str = "r1") -> ev.LlmRequest:
    return ev.LlmRequest(req_id=req_id, task_id="t", log_time="", model="m", msg_count=1, tool_count=1)


def delta(text: str, req_id: str = "r1") -> ev.AssistantDelta:
    return ev.AssistantDelta(text=text, req_id=req_id, task_id="t")


def reasoning(text: str, req_id: str = "r1") -> ev.ReasoningDelta:
    return ev.ReasoningDelta(text=text, req_id=req_id, task_id="t")


def message(text: str, tools: Sequence[str] = (), req_id: str = "r1") -> ev.AssistantMessage:
    return ev.AssistantMessage(text=text, reasoning="", tool_calls=tools, req_id=req_id, task_id="t", log_time="")


def proposed(call: str = "c1", tool: str = "run_code", /, **arguments: Any) -> ev.ToolProposed:
    return ev.ToolProposed(req_id=call, name=tool, arguments=arguments or {"code": CODE}, task_id="t")


def started(call: str = "c1", name: str = "run_code") -> ev.ToolStarted:
    return ev.ToolStarted(task_id="t", req_id=call, name=name)


def finished(call: str = "c1", name: str = "run_code", status: str = "ok", **output: Any) -> ev.ToolFinished:
    result = ToolOutput(**{"text": "42", "ok": status == "ok", **output})
    return ev.ToolFinished(
        task_id="t", req_id=call, name=name, status=status, duration=110, result_preview=result.text, output=result
    )


def turn_end(status: str = "completed") -> ev.TurnEnd:
    return ev.TurnEnd(status=status, iterations=1, produced_files=[], task_id="t")


def small_turn() -> Iterator[ev.Event]:
    """Reasoning, text, one allowed call with a picture, and the answer."""
    yield ev.TurnStart(task_id="t", input="go")
    yield request()
    yield reasoning("The user wants a sum.")
    yield delta("I will **compute** ")
    yield delta("it.")
    yield message("I will **compute** it.", ["run_code"])
    yield proposed()
    yield started()
    yield finished(summary="int", images=(ImageData(PNG),))
    yield ev.IterationEnd(iteration=1, task_id="t")
    yield request("r2")
    yield delta("It is `42`.", "r2")
    yield message("It is `42`.", req_id="r2")
    yield turn_end()


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Page:
    """What ``cell.js`` does with the operations, on strings: each text item's finished HTML and raw tail."""

    def __init__(self) -> None:
        self.html: dict[int, str] = {}
        self.tail: dict[int, str] = {}
        self.tools: dict[int, dict[str, Any]] = {}
        self.other: list[list[Any]] = []
        self.order: list[int] = []

    def receive(self, message: dict[str, Any]) -> None:
        for op in message["o"]:
            self.apply(*op)

    def apply(self, what: str, item: Any = None, *rest: Any) -> None:
        if what == "reset":
            self.html, self.tail, self.tools, self.order = {}, {}, {}, []
        elif what == "item":
            self.html[item], self.tail[item] = "", ""
            self.order.append(item)
        elif what == "+":
            self.tail[item] += rest[0]
        elif what == "p":
            self.html[item] += f"<p>{html.escape(self._cut(item, rest[0]).strip(), quote=False)}</p>\n"
        elif what == "h":
            self._cut(item, rest[0])
            self.html[item] += rest[1]
        elif what == "c":
            self._code(item, *rest)
        elif what == "r":
            self.html[item], self.tail[item] = rest[0], ""
        elif what == "tool":
            if item not in self.tools:
                self.order.append(item)
            self.tools.setdefault(item, {}).update(rest[0])
        elif what == "del":
            self.order.remove(item)
            del self.html[item], self.tail[item]
        elif what not in {"f", "~", "end"}:
            self.other.append([what, item, *rest])

    def _cut(self, item: int, units: int) -> str:
        encoded = self.tail[item].encode("utf-16-le")
        self.tail[item] = encoded[2 * units :].decode("utf-16-le")
        return encoded[: 2 * units].decode("utf-16-le")

    def _code(self, item: int, units: int, start: int, end: int, runs: list[Any]) -> None:
        code = self._cut(item, units).encode("utf-16-le")[2 * start : 2 * end]
        pieces, at = [], 0
        for length, kind in zip(runs[::2], runs[1::2], strict=True):
            piece = html.escape(code[2 * at : 2 * (at + length)].decode("utf-16-le"), quote=False)
            pieces.append(f'<span class="{kind}">{piece}</span>' if kind else piece)
            at += length
        assert at == len(code) // 2
        self.html[item] += f'<pre class="zq-code"><code>{"".join(pieces)}</code></pre>\n'


def same_html(one: str, other: str) -> bool:
    """Equal but for the space between tags."""
    return re.sub(r">\s+<", "><", one).strip() == re.sub(r">\s+<", "><", other).strip()


def play(
    text: str, send: Callable[[dict[str, Any]], None], *, deltas: int, rate: float = 200.0, batch: float = 0.05
) -> tuple[Transcript, CellStream]:
    """Stream ``text`` in equal deltas, ``rate`` a second, taken every ``batch`` seconds as a cell does."""
    clock = Clock()
    transcript = Transcript("code", "m", "auto", clock)
    stream = CellStream(transcript, send, clock)
    stream.take(transcript.apply(request()))
    size = max(1, -(-len(text) // deltas))
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    each = max(1, round(rate * batch))
    for at in range(0, len(pieces), each):
        for piece in pieces[at : at + each]:
            stream.take(transcript.apply(delta(piece)))
        end = clock.now + batch
        while stream.waiting and clock.now + stream.due_in() < end:
            clock.now += stream.due_in()
            stream.flush()
        clock.now = end
    stream.take(transcript.apply(message(text)))
    stream.flush()
    return transcript, stream
