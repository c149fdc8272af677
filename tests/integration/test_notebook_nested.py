"""``%%agent`` where it cannot be awaited: inside other magics, functions and nested cells."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.integration.kernel import Kernel, Run
from tests.integration.scripted_kernel import complaint, scripted_kernel, shown

CALL = "get_ipython().run_cell_magic('agent', '-m scripted -o r', 'hi')"


@pytest.fixture(scope="module")
def shared_kernel() -> Iterator[Kernel]:
    with scripted_kernel() as kernel:
        kernel.execute("import asyncio, signal", check=True)
        yield kernel


@pytest.fixture
def kernel(shared_kernel: Kernel) -> Kernel:
    shared_kernel.execute("%agent new default\nscript('fine')\nr = None", check=True)
    return shared_kernel


@pytest.mark.parametrize(
    "cell",
    [
        "%%time\n%%agent -m scripted -o r\nhi",
        f"def ask():\n    {CALL}\nask()",
        f'exec("{CALL}")',
        f"for _ in range(1):\n    await {CALL}",
        f"async def ask():\n    await {CALL}\nawait ask()",
        "_ = get_ipython().run_cell('%%agent -m scripted -o r\\nhi')",
        f"{CALL}",
    ],
)
def test_it_runs_to_its_end_wherever_it_is_called(kernel: Kernel, cell: str) -> None:
    before = kernel.execute("signal.getsignal(signal.SIGINT), asyncio.get_event_loop()").text
    reply = kernel.execute(cell, check=True)
    assert "fine" in shown(reply)
    assert reply.stderr == ""
    assert kernel.execute("r.text").text == "'fine'"
    assert kernel.execute("signal.getsignal(signal.SIGINT), asyncio.get_event_loop()").text == before


def test_it_is_captured_as_any_output(kernel: Kernel) -> None:
    reply = kernel.execute("%%capture kept\n%%agent -m scripted -o r\nhi", check=True)
    assert reply.displays == []
    assert kernel.execute("[o.data['text/plain'] for o in kept.outputs]").text.startswith("['analyst")


def test_it_runs_without_autoawait_too(kernel: Kernel) -> None:
    kernel.execute("%autoawait off", check=True)
    try:
        assert "fine" in shown(kernel.execute("%%agent -m scripted\nhi"))
    finally:
        kernel.execute("%autoawait on", check=True)


def test_an_approval_is_typed_where_no_click_could_arrive(kernel: Kernel) -> None:
    kernel.execute("script(Step(tool_calls=[('run_code', {'code': 'nested = 6 * 7'})]), 'done')", check=True)
    reply = kernel.execute("%%time\n%%agent -m scripted\nhi", answers=("y",))
    assert "nested = 6 * 7" in reply.stdout
    assert kernel.execute("nested").text == "42"


def test_what_is_approved_is_seen_even_when_output_is_captured(kernel: Kernel) -> None:
    kernel.execute("script(Step(tool_calls=[('run_code', {'code': 'unseen = 1'})]), 'done')", check=True)
    run = kernel.start("%%capture\n%%agent -m scripted\nhi", allow_stdin=True)
    prompt = kernel.client.get_stdin_msg(timeout=30)["content"]["prompt"]
    kernel.client.input("n")
    run.finish()
    assert "unseen = 1" in prompt
    assert prompt.endswith("deny: ")


@pytest.mark.parametrize(
    ("step", "flags"),
    [
        ("Step('word ' * 3000, delay=0.02)", ""),
        ("Step(tool_calls=[('run_code', {'code': 'time.sleep(60)'})])", "--mode auto"),
        ("Step(tool_calls=[('run_code', {'code': 'import asyncio\\nawait asyncio.sleep(60)'})])", "--mode auto"),
    ],
)
def test_the_stop_button_works_there_too(kernel: Kernel, step: str, flags: str) -> None:
    kernel.execute(f"script({step})", check=True)
    run = kernel.start(f"%%time\n%%agent -m scripted -o r {flags}\nhi")
    _wait_until_it_runs(run)
    pressed = time.monotonic()
    kernel.interrupt()
    reply = run.finish()
    assert time.monotonic() - pressed < 3
    assert reply.status == "ok"
    assert kernel.execute("r.status").text == "'interrupted'"


def _wait_until_it_runs(run: Run) -> None:
    run.wait_for_message(lambda message: message["msg_type"] == "display_data")


@pytest.mark.parametrize(
    "code",
    [
        "get_ipython().run_cell_magic('ag' + 'ent', '-m scripted', 'x')",
        "get_ipython().run_line_magic('ag' + 'ent', 'mode auto')",
        "import zq_notebook\nawait zq_notebook.ask('x', model='scripted')",
        "%agent mode auto",
    ],
)
def test_the_agents_own_code_can_neither_start_nor_steer_an_agent(kernel: Kernel, code: str) -> None:
    kernel.execute("%agent allow run_code", check=True)
    kernel.execute(f"script(Step(tool_calls=[('run_code', {{'code': {code!r}}})]), Step('ok', expect='UsageError'))")
    kernel.execute("%%agent -m scripted\nhi", check=True)
    assert "interactive" in kernel.execute("%agent status").stdout


def test_a_second_turn_at_the_same_time_is_refused_and_the_first_one_goes_on(kernel: Kernel) -> None:
    kernel.execute("import zq_notebook\nscript(Step('one ' * 20, delay=0.01), 'two')", check=True)
    reply = kernel.execute(
        "first = asyncio.ensure_future(zq_notebook.ask('one', model='scripted'))\nawait asyncio.sleep(0.05)\n"
        "await zq_notebook.ask('two', model='scripted')"
    )
    assert "Another turn is running" in complaint(reply)
    assert kernel.execute("(await first).status").text == "'completed'"
