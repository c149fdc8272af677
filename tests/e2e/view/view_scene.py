"""Runs in a test's kernel, beside its notebook: plays events into a live view as a turn would."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from IPython.core.getipython import get_ipython

from zq_notebook.engine import events as ev
from zq_notebook.engine.approval import ApprovalReply, PermissionRequest
from zq_notebook.notebook.comm_idle import keep_current_request
from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.transcript_blocks import Footer
from zq_notebook.notebook.view.approval import approval_card
from zq_notebook.notebook.view.live import LiveView
from zq_notebook.toolio import ToolOutput

keep_current_request(get_ipython())  # as %load_ext does

ANSWER = """**North fell 16.9 %**, see `sales`.

1. first
2. second

```python
def share(frame):
    return frame["region"].value_counts()  # of rows
```

| region | rows |
|---|---|
| North | 214 |

"""


class Scene:
    """One turn; ``stops`` counts presses of Stop, ``go`` is set by the test's next cell or by Stop."""

    def __init__(self) -> None:
        self.stops = 0
        self.stopped = asyncio.Event()
        self.transcript = Transcript("analyst", "gpt-5.2", "interactive")
        self.view = LiveView(self.transcript, self._stop)

    def _stop(self) -> None:
        self.stops += 1
        self.stopped.set()

    async def open(self) -> Scene:
        self.view.open()
        assert await self.view.wait_ready(20), "no page has drawn the cell"
        return self

    def say(self, text: str) -> None:
        self.view.apply([ev.AssistantDelta(text=text, req_id="r", task_id="t")])

    def say_all(self, texts: Sequence[str]) -> None:
        self.view.apply([ev.AssistantDelta(text=text, req_id="r", task_id="t") for text in texts])

    def said(self, text: str) -> None:
        message = ev.AssistantMessage(text=text, reasoning="", tool_calls=[], req_id="r", task_id="t", log_time="")
        self.view.apply([message])

    def propose(self, name: str, arguments: Mapping[str, Any], call: str) -> None:
        self.view.apply([ev.ToolProposed(req_id=call, name=name, arguments=arguments, task_id="t")])

    def finish_tool(self, call: str, name: str, status: str = "ok", text: str = "42") -> None:
        output = ToolOutput(text=text, ok=status == "ok", summary="int" if status == "ok" else None)
        finished = ev.ToolFinished(
            task_id="t", req_id=call, name=name, status=status, duration=20, result_preview=text, output=output
        )
        self.view.apply([ev.ToolStarted(task_id="t", req_id=call, name=name), finished])

    async def ask(
        self,
        name: str = "run_code",
        arguments: Mapping[str, Any] | None = None,
        call: str = "c1",
        *,
        command: bool = False,
    ) -> ApprovalReply | None:
        """The answer; ``None`` when Stop was pressed instead."""
        arguments = arguments or {"code": "total = 41 + 1\ntotal"}
        self.propose(name, arguments, call)
        answered = asyncio.get_running_loop().create_future()
        request = PermissionRequest(
            tool_name=name, arguments=arguments, metadata=None, reason="it may change anything", tool_call_id=call
        )
        self.view.ask(approval_card(request, workspace=Path.cwd(), can_always_command=command), answered.set_result)
        stopped = asyncio.ensure_future(self.stopped.wait())
        done, _ = await asyncio.wait({answered, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if answered not in done:
            return None
        reply: ApprovalReply = answered.result()
        self.view.approval_closed(call, reply)
        self.finish_tool(call, name, "ok" if reply.outcome != "deny" else "denied")
        return reply

    def close(self, status: str = "completed") -> None:
        self.view.apply([ev.TurnEnd(status=status, iterations=1, produced_files=[], task_id="t")])
        self.view.close(Footer(status=status, files=["clean.csv"], variables_new=["total"], tokens=3100, elapsed=14.0))
