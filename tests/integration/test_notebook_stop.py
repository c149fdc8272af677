"""■ at every moment, and what it leaves behind: nothing, and a kernel that works as before."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

import pytest

from tests.integration.kernel import Kernel
from tests.integration.scripted_kernel import scripted_kernel, shown

STATE = (
    "signal.getsignal(signal.SIGINT), sys.stdout, sys.stderr, sys.displayhook, get_ipython().showtraceback, "
    "sorted(vars(sys.stdout)), sorted(vars(get_ipython()))"
)


@pytest.fixture(scope="module")
def shared_kernel() -> Iterator[Kernel]:
    with scripted_kernel() as kernel:
        kernel.execute("import signal, threading\n%agent model scripted\nscript('warm')", check=True)
        kernel.execute("%%agent\nwarm up", check=True)
        yield kernel


@pytest.fixture
def kernel(shared_kernel: Kernel) -> Iterator[Kernel]:
    shared_kernel.execute("%agent new default", check=True)
    before = shared_kernel.execute(STATE).text
    yield shared_kernel
    assert shared_kernel.execute(STATE).text == before
    shared_kernel.execute("script('and on')", check=True)
    assert "and on" in shown(shared_kernel.execute("%%agent --new\nx"))


def code(text: str) -> str:
    return f"Step(tool_calls=[('run_code', {{'code': {text!r}}})])"


def stopped(kernel: Kernel, steps: str, *, presses: int = 1, gap: float = 0, ready: str = "", setup: str = "") -> float:
    """Run a turn, press ■ once the file ``ready`` is there, and give the seconds until the cell ended.

    Without a ``gap`` between them (seconds), two presses may be one signal.
    """
    kernel.execute(f"{setup}\nscript({steps}, 'never')", check=True)
    run = kernel.start("%%agent --mode auto -o r\ngo")
    run.wait_for_message(lambda message: message["msg_type"] == "display_data")
    if ready:
        _until(lambda: os.path.exists(ready))
    pressed = time.monotonic()
    for _ in range(presses):
        kernel.interrupt()
        time.sleep(gap)
    reply = run.finish()
    took = time.monotonic() - pressed
    assert reply.status == "ok"
    assert reply.stderr == ""
    lines = shown(reply).splitlines()
    assert lines[-1].startswith("interrupted · variables")
    assert kernel.execute("r.status").text == "'interrupted'"
    return took


def _until(true: object) -> None:
    deadline = time.monotonic() + 20
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def ready(tmp_path: object) -> str:
    return f"{tmp_path}/ready"


@pytest.mark.parametrize("presses", [1, 2, 5])
def test_a_stream_is_stopped(kernel: Kernel, presses: int) -> None:
    assert stopped(kernel, "Step('word ' * 5000, delay=0.02)", presses=presses) < 3


@pytest.mark.parametrize(
    "work",
    [
        "time.sleep(60)",
        "while True: pass",
        "import asyncio\nawait asyncio.sleep(60)",
        "threading.Event().wait(60)",
        "import subprocess\nsubprocess.run(['sleep', '60'])",
        "!sleep 60",
    ],
)
@pytest.mark.parametrize("presses", [1, 2])
def test_code_is_stopped(kernel: Kernel, ready: str, work: str, presses: int) -> None:
    took = stopped(kernel, code(f"open({ready!r}, 'w').close()\n{work}"), presses=presses, ready=ready)
    assert took < 3


def test_code_is_given_the_time_to_clean_up(kernel: Kernel, ready: str) -> None:
    work = (
        f"cleaned = 0\ntry:\n    open({ready!r}, 'w').close()\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    time.sleep(0.3)\n    cleaned = 1\n    raise"
    )
    stopped(kernel, code(work), ready=ready)
    assert kernel.execute("cleaned").text == "1"


def test_a_child_process_does_not_outlive_the_code_that_waits_for_it(kernel: Kernel, ready: str) -> None:
    stopped(kernel, code(f"!echo $$ > {ready}.part; mv {ready}.part {ready}; exec sleep 60"), ready=ready)
    with open(ready) as file:
        pid = int(file.read())
    _until(lambda: not os.path.exists(f"/proc/{pid}"))


def test_the_wait_before_another_try_is_stopped(kernel: Kernel) -> None:
    kernel.execute("os.environ['NETWORK_RETRY_BASE_MS'] = '60000'", check=True)
    try:
        assert stopped(kernel, "Step('x', finish_reason='')") < 3
    finally:
        kernel.execute("del os.environ['NETWORK_RETRY_BASE_MS']", check=True)


def test_a_tool_that_holds_up_the_engine_is_left_behind_by_a_second_press(kernel: Kernel, ready: str) -> None:
    setup = (
        "released = threading.Event()\n"
        "registry = get_ipython().magics_manager.registry['AgentMagics'].service.current.engine.registry\n"
        "@registry.tool(risk_level='low')\n"
        "async def hold() -> str:\n    'Holds the loop.'\n"
        f"    open({ready!r}, 'w').close()\n    released.wait(30)\n    return 'late'"
    )
    took = stopped(kernel, "Step(tool_calls=[('hold', {})])", presses=2, gap=0.3, ready=ready, setup=setup)
    assert took < 5
    refused = kernel.execute("%%agent\nx")
    assert refused.error is not None
    assert "still ending" in refused.error[1]
    kernel.execute("released.set()", check=True)


def test_presses_while_the_cell_is_ending_keep_no_reply_from_being_sent(kernel: Kernel) -> None:
    chance = random.Random(7)
    for _ in range(12):
        kernel.execute("script(Step('word ' * 5000, delay=0.01), 'never')", check=True)
        run = kernel.start("%%agent --new -o r\ngo")
        run.wait_for_message(lambda message: message["msg_type"] == "display_data")
        for _ in range(chance.randint(2, 6)):
            kernel.signal()
            time.sleep(chance.random() * 0.03)
        reply = run.finish()
        assert (reply.status, reply.stderr) == ("ok", "")
        assert kernel.execute("r.status").text == "'interrupted'"


def test_the_stop_button_works_in_the_code_behind_a_turn(kernel: Kernel) -> None:
    kernel.execute("script('fine')\nimport asyncio, zq_notebook", check=True)
    run = kernel.start(
        "await zq_notebook.ask('x', new=True)\nprint('behind')\n"
        # One long sleep would not do: ipykernel's loop may not notice a signal while it sleeps.
        "for _ in range(600):\n    await asyncio.sleep(0.1)"
    )
    run.wait_for("behind")
    kernel.interrupt()
    reply = run.finish()
    assert reply.error is not None


def test_nothing_is_shown_behind_the_end_of_a_cell(kernel: Kernel) -> None:
    kernel.execute("script(Step('word ' * 5000, delay=0.02), 'never')", check=True)
    run = kernel.start("%%agent\ngo")
    run.wait_for_message(lambda message: message["msg_type"] == "display_data")
    for _ in range(3):
        kernel.interrupt()
    run.finish()
    after = kernel.execute("time.sleep(0.5)")
    late = [m for m in after.messages if m["msg_type"] == "display_data"]
    assert late == []
