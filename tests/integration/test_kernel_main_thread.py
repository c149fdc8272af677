"""The bridge to the main thread in a real kernel: ■, Stop, cancellation, order, speed, widget messages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.harness import SETUP, outputs_of, run_code, start_code
from tests.integration.kernel import Kernel, Reply, running_kernel


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with running_kernel() as started:
        started.execute(SETUP, check=True)
        yield started


@pytest.fixture(autouse=True)
def _fresh(kernel: Kernel) -> None:
    kernel.execute("zq_harness = _Harness()", check=True)


_BEGUN = """\
_kernel = get_ipython().kernel
_kernel.session.send(_kernel.iopub_socket, 'begun')
"""
# From the cell's own tick: then it surely serves, and no job is running that the signal could hit instead.
_TELL = "zq_harness.tick = lambda: print('waiting', flush=True)\n"


def _interrupt_code(kernel: Kernel, code: str) -> Reply:
    run = start_code(kernel, _BEGUN + code)  # printing would not do: what the code prints is captured
    run.wait_for_message(lambda message: message["msg_type"] == "begun")
    kernel.interrupt()
    return run.finish()


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntime.sleep(60)",
        "while True: pass",
        "import asyncio\nawait asyncio.sleep(60)",
        "import subprocess\nsubprocess.run(['sleep', '60'])",
        "import asyncio, time\nasync def f():\n    while True: time.sleep(0.01)\nawait asyncio.create_task(f())",
        "def g():\n    while True: yield 1\nsum(g())",
    ],
)
def test_stop_button_stops_the_code_and_tells_the_engine(kernel: Kernel, code: str) -> None:
    reply = _interrupt_code(kernel, code)
    (out,), presses = outputs_of(reply)
    assert presses >= 1
    assert out["error_type"] == "Interrupted"
    assert "STOPPED" in out["text"]
    assert reply.status == "ok"
    assert reply.error is None
    assert kernel.execute("1 + 1").text == "2"


def test_stop_button_while_the_engine_waits_is_a_callback_and_no_traceback(kernel: Kernel) -> None:
    kernel.execute(
        "async def _engine():\n    await zq_harness.token.wait_async()\n    return 'ended by itself'",
        check=True,
    )
    run = kernel.start(f"{_TELL}await zq_harness.play(_engine())")
    run.wait_for("waiting")
    kernel.signal()
    reply = run.finish()
    assert reply.text == "'ended by itself'"
    assert reply.error is None
    assert kernel.execute("zq_harness.presses").text == "1"


def test_second_press_ends_the_cell_though_the_engine_does_not(kernel: Kernel) -> None:
    kernel.execute(
        "release = threading.Event()\nasync def _engine():\n    await asyncio.to_thread(release.wait, 30)",
        check=True,
    )
    run = kernel.start(
        f"{_TELL}zq_harness.pressed = lambda: print('noticed', flush=True)\nawait zq_harness.play(_engine())"
    )
    run.wait_for("waiting")
    kernel.signal()
    run.wait_for("noticed")
    kernel.signal()
    reply = run.finish()
    kernel.execute("release.set()")
    assert reply.text == "False"
    assert reply.error is None


def test_after_the_cell_the_stop_button_works_as_before(kernel: Kernel) -> None:
    run_code(kernel, "1")
    run = kernel.start("import time\nprint('sleeping', flush=True)\ntime.sleep(60)")
    run.wait_for("sleeping")
    kernel.interrupt()
    assert run.finish().error == ("KeyboardInterrupt", "")


def test_code_that_takes_the_signal_handler_does_not_keep_it(kernel: Kernel) -> None:
    run_code(kernel, "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)")
    reply = kernel.start(
        "await zq_harness.tools([('run_code', {'code': 'import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)'}),"
        "('run_code', {'code': 'import time; time.sleep(60)', 'timeout': 1})])"
    ).finish()
    (_, out), _ = outputs_of(reply)
    assert out["error_type"] == "TimeoutError"


def test_stop_from_the_engine_side_interrupts_synchronous_code(kernel: Kernel) -> None:
    kernel.execute(
        "async def _engine():\n"
        "    asyncio.get_running_loop().call_later(0.2, zq_harness.token.set)\n"
        "    return await zq_harness.calls([('run_code', {'code': 'import time\\nprint(1)\\ntime.sleep(60)'})])",
        check=True,
    )
    reply = kernel.execute("(out,) = await zq_harness.play(_engine())\nout.error_type, 'STOPPED' in out.text")
    assert reply.text == "('Interrupted', True)"


def test_cancelling_the_caller_interrupts_the_work(kernel: Kernel) -> None:
    kernel.execute(
        "import time\n"
        "def _work():\n"
        "    try:\n        time.sleep(60)\n"
        "    except KeyboardInterrupt:\n        seen.append('KeyboardInterrupt'); raise\n"
        "seen = []\n"
        "async def _engine():\n"
        "    began = time.perf_counter()\n"
        "    try:\n        async with asyncio.timeout(0.2): await zq_harness.main.run(_work)\n"
        "    except TimeoutError: return time.perf_counter() - began < 5",
        check=True,
    )
    assert kernel.execute("await zq_harness.play(_engine()), seen").text == "(True, ['KeyboardInterrupt'])"


def test_jobs_run_one_at_a_time_in_order_and_bring_back_what_they_return_or_raise(kernel: Kernel) -> None:
    kernel.execute(
        "order = []\n"
        "async def _slow(n):\n"
        "    order.append(('in', n)); await asyncio.sleep(0.02); order.append(('out', n)); return n\n"
        "def _bad(): raise LookupError('x')\n"
        "def _where(): return threading.current_thread() is threading.main_thread()\n"
        "async def _engine():\n"
        "    run = zq_harness.main.run\n"
        "    got = await asyncio.gather(*(run(lambda n=n: _slow(n)) for n in range(4)), run(_bad), run(_where),\n"
        "                               return_exceptions=True)\n"
        "    return [g if isinstance(g, (int, bool)) else type(g).__name__ for g in got]",
        check=True,
    )
    reply = kernel.execute("await zq_harness.play(_engine()), [n for _, n in order]")
    assert reply.text == "([0, 1, 2, 3, 'LookupError', True], [0, 0, 1, 1, 2, 2, 3, 3])"


def test_work_without_a_cell_is_refused_in_one_clear_sentence(kernel: Kernel) -> None:
    reply = kernel.execute(
        "try:\n    await zq_harness.main.run(lambda: 1)\nexcept Exception as e:\n    print(type(e).__name__, e)"
    )
    assert reply.stdout.startswith("AgentError The cell that the agent works for has ended")


def test_two_cells_cannot_serve_the_same_session(kernel: Kernel) -> None:
    reply = kernel.execute(
        "main = zq_harness.main\n"
        "first = asyncio.ensure_future(main.serve(asyncio.sleep(0.2)))\nawait asyncio.sleep(0)\n"
        "try:\n    await main.serve(asyncio.sleep(0))\nexcept Exception as e:\n    print(e)\n"
        "await first"
    )
    assert "already running in another cell" in reply.stdout
    assert reply.text == "True"


def test_cancelling_the_cells_coroutine_stops_the_work_first(kernel: Kernel) -> None:
    kernel.execute(
        "async def _engine():\n    await zq_harness.token.wait_async()\n    return 'engine ended'",
        check=True,
    )
    reply = kernel.execute(
        "try:\n    async with asyncio.timeout(0.2): await zq_harness.play(_engine())\n"
        "except TimeoutError: print('timed out,', zq_harness.presses, 'press')"
    )
    assert reply.stdout == "timed out, 1 press\n"


def test_from_the_engine_to_the_main_thread_takes_a_few_milliseconds(kernel: Kernel) -> None:
    kernel.execute(
        "import time, statistics\n"
        "async def _engine():\n"
        "    waits = []\n"
        "    for _ in range(30):\n"
        "        await asyncio.sleep(0.011)\n"
        "        asked = time.perf_counter()\n"
        "        waits.append(await zq_harness.main.run(time.perf_counter) - asked)\n"
        "    return statistics.median(waits)",
        check=True,
    )
    assert float(kernel.execute("await zq_harness.play(_engine())").text) < 0.005


def test_the_clock_ticks_while_nothing_happens(kernel: Kernel) -> None:
    kernel.execute("async def _engine(): await asyncio.sleep(0.55)", check=True)
    kernel.execute("await zq_harness.play(_engine(), tick=0.1)", check=True)
    assert 3 <= int(kernel.execute("zq_harness.ticks").text) <= 6


def test_every_widget_message_gets_its_idle_while_a_cell_awaits(kernel: Kernel) -> None:
    kernel.execute(
        "import comm\n"
        "from zq_notebook.notebook.agent_cell import agent_cell\n"
        "got = []\n"
        "def _take(m):\n    got.append(m['content']['data'])\n    if len(got) == 3: enough.set()\n"
        "def _opened(c, msg): c.on_msg(_take)\n"
        "comm.get_comm_manager().register_target('t.idle', _opened)\n"
        "async def _engine(): await enough.wait()",
        check=True,
    )
    kernel.send("comm_open", {"comm_id": "c2", "target_name": "t.idle", "data": {}})
    run = kernel.start(
        "enough = asyncio.Event()\n"
        "with agent_cell(get_ipython()):\n    print('ready', flush=True); await zq_harness.main.serve(enough.wait())"
    )
    run.wait_for("ready")
    for text in ("h", "he", "hel"):
        sent = kernel.send("comm_msg", {"comm_id": "c2", "data": {"text": text}})
        run.wait_for_message(
            lambda m, sent=sent: (
                m["parent_header"].get("msg_id") == sent and m["content"].get("execution_state") == "idle"
            )  # type: ignore[misc]
        )
    reply = run.finish()
    statuses = [m["content"]["execution_state"] for m in reply.messages if m["msg_type"] == "status"]
    assert statuses[-2:] == ["busy", "idle"]
    assert kernel.execute("[m['text'] for m in got]").text == "['h', 'he', 'hel']"
    assert kernel.execute("vars(get_ipython().kernel).keys() & {'dispatch_shell', '_publish_status'}").text == "set()"


def test_idle_is_not_doubled_when_the_kernel_publishes_it_itself(kernel: Kernel) -> None:
    reply = kernel.execute(
        "from zq_notebook.notebook.comm_idle import idle_after_comms\n"
        "class Later:\n"
        "    sent = []\n"
        "    def get_parent(self, channel): return {}\n"
        "    def _publish_status(self, status, channel, parent=None): self.sent.append(status)\n"
        "    async def dispatch_shell(self, msg, *, concurrent=False): self._publish_status('idle', 'shell')\n"
        "class Shell: kernel = Later()\n"
        "with idle_after_comms(Shell): await Shell.kernel.dispatch_shell(None, concurrent=True)\n"
        "Later.sent"
    )
    assert reply.text == "['idle']"
