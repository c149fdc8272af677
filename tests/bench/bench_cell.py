"""What a person feels in the browser: click to tool start, last delta to visible, bytes sent for a text.

    python tests/bench/bench_cell.py [--clicks 20] [--deltas 2000] [--rate 200]

Starts its own Jupyter server and Chromium, and prints the medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.e2e.conftest import BROWSER_OPTIONS
from tests.e2e.notebook_page import NotebookPage, notebook_with
from tests.e2e.server import JupyterServer, find_chromium

LOAD = """\
%load_ext zq_notebook
import time
from zq_notebook import ScriptedProvider, Step, register_model
def script(*steps): register_model("scripted", ScriptedProvider(steps))
%agent model scripted
"""

# Wall-clock times of each click, as the page saw it, in seconds since 1970.
NOTE_CLICKS = """() => {
    window.clicks = [];
    document.addEventListener('click', event => {
        if (event.target.closest('button')?.innerText.includes('Allow once')) window.clicks.push(Date.now() / 1000);
    }, true);
}"""

# When the last word is on screen, in seconds since 1970.
NOTE_END = """() => {
    window.endSeen = 0;
    const look = () => {
        if (document.querySelector('.jp-Notebook')?.textContent.includes('LASTWORD-seen')) {
            requestAnimationFrame(() => { window.endSeen = performance.timeOrigin / 1000 + performance.now() / 1000; });
        } else setTimeout(look, 2);
    };
    look();
}"""


def open_notebook(page: Page, server: JupyterServer, name: str, cells: list[str]) -> NotebookPage:
    (server.root / name).write_text(notebook_with(cells), encoding="utf-8")
    notebook = NotebookPage(page, server, "lab", name)
    notebook.open()
    return notebook


TIMES = "print(*Starts.times, *started)"

# Notes when the engine says that a tool starts.
HOOK = """
from zq_notebook import EngineHook
class Starts(EngineHook):
    times = []
    def on_tool_started(self, name): self.times.append(time.time())
get_ipython().magics_manager.registry["AgentMagics"].service.current.engine.hook = Starts()
"""


def click_to_start(page: Page, server: JupyterServer, clicks: int) -> tuple[list[float], list[float]]:
    """Milliseconds from each click to the tool's start, and to the moment the allowed code ran."""
    code = "started.append(time.time())"
    script = f"script(*[Step(tool_calls=[('run_code', {{'code': {code!r}}})]) for _ in range({clicks})], 'all done')"
    notebook = open_notebook(
        page, server, "clicks.ipynb", [f"{LOAD}{HOOK}started = []\n{script}", "%%agent\ngo", TIMES]
    )
    notebook.run(0)
    notebook.wait_done(0)
    page.evaluate(NOTE_CLICKS)
    notebook.run(1)
    for number in range(clicks):
        ask = notebook.output(1).locator(".zq-ask")
        expect(ask).to_be_visible(timeout=30_000)
        expect(ask).not_to_have_attribute("data-guarded", "")
        card = ask.element_handle()
        ask.get_by_role("button", name="Allow once").click()
        page.wait_for_function(f"() => window.clicks.length === {number + 1}")
        page.wait_for_function("card => !card.isConnected", arg=card)
    notebook.wait_done(1)
    notebook.run(2)
    notebook.wait_done(2)
    times = [float(word) for word in notebook.output(2).inner_text().split()]
    clicked: list[float] = page.evaluate("() => window.clicks")
    late = [(t - c) * 1000 for t, c in zip(times, clicked * 2, strict=True)]
    return late[:clicks], late[clicks:]


def stream(page: Page, server: JupyterServer, deltas: int, rate: int) -> tuple[float, float, int]:
    """Milliseconds from last delta to visible, bytes to the page per byte of text, and the text's size."""
    provider = f"""
import asyncio
from zq_notebook import StreamChunk
class Steady:
    async def stream(self, model, messages, tools, opts):
        begun = time.perf_counter()
        for n in range({deltas}):
            last = n == {deltas} - 1
            text = " LASTWORD-" + "seen" if last else (f"word{{n}} and a few more " if n % 40 else "\\n\\n- **point** ")
            wait = begun + n / {rate} - time.perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            if last:
                globals()["last_sent"] = time.time()
            yield StreamChunk(content=text[:20] if not last else text)
        await asyncio.sleep(1.0)
        yield StreamChunk(finish_reason="stop")
register_model("steady", Steady())
"""
    notebook = open_notebook(
        page, server, "stream.ipynb", [LOAD + provider, "%%agent -m steady -o r\ngo", "print(last_sent, len(r.text))"]
    )
    received = [0]
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.on(
        "Network.webSocketFrameReceived",
        lambda e: received.__setitem__(0, received[0] + len(e["response"]["payloadData"])),
    )
    notebook.run(0)
    notebook.wait_done(0)
    page.evaluate(NOTE_END)
    received[0] = 0
    notebook.run(1)
    page.wait_for_function("() => window.endSeen > 0", timeout=120_000)
    sent = received[0]
    notebook.wait_done(1)
    notebook.run(2)
    notebook.wait_done(2)
    words = notebook.output(2).inner_text().split()
    seen = page.evaluate("() => window.endSeen")
    return (seen - float(words[0])) * 1000, sent / int(words[1]), int(words[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clicks", type=int, default=20)
    parser.add_argument("--deltas", type=int, default=2000)
    parser.add_argument("--rate", type=int, default=200)
    options = parser.parse_args()
    chromium = find_chromium()
    if chromium is None:
        raise SystemExit("No Chromium on this machine (on Debian: apt-get install chromium).")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        server = JupyterServer(Path(home))
        server.start()
        browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER_OPTIONS)
        begun = time.perf_counter()
        starts, runs = click_to_start(browser.new_page(), server, options.clicks)
        for name, times in (("tool start", starts), ("code running", runs)):
            middle = statistics.median(times)
            print(f"click to {name}, {len(times)} clicks: median {middle:.1f} ms, max {max(times):.1f} ms")
        server.shut_down_kernels()
        late, ratio, size = stream(browser.new_page(), server, options.deltas, options.rate)
        print(
            f"{options.deltas} deltas at {options.rate}/s, {size} characters: last delta to visible {late:.0f} ms, "
            f"bytes to the page {ratio:.1f} times the text"
        )
        print(f"({time.perf_counter() - begun:.0f} s)")
        browser.close()
        server.stop()


if __name__ == "__main__":
    main()
