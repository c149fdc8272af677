"""Code of the agent that breaks things: the kernel, the cell and the cells after it stay as they were."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.kernel import Kernel, Reply
from tests.integration.scripted_kernel import scripted_kernel, shown

STATE = (
    "signal.getsignal(signal.SIGINT), sys.stdout, sys.stderr, sys.stdout.closed, sys.displayhook, sys.excepthook, "
    "get_ipython().showtraceback, asyncio.get_running_loop(), sys.stdin, input, sorted(vars(sys.stdout)), "
    "plt.get_fignums(), Out.get(0), len(In) - get_ipython().execution_count"
)


@pytest.fixture(scope="module")
def shared_kernel() -> Iterator[Kernel]:
    with scripted_kernel() as kernel:
        kernel.execute("%matplotlib inline\nimport matplotlib.pyplot as plt", check=True)
        kernel.execute("import asyncio, signal\n%agent mode auto\n%agent model scripted\nscript('warm')", check=True)
        kernel.execute("%%agent\nwarm up", check=True)
        yield kernel


@pytest.fixture
def kernel(shared_kernel: Kernel) -> Iterator[Kernel]:
    before = shared_kernel.execute(STATE).text
    yield shared_kernel
    assert shared_kernel.execute(STATE).text == before
    after = shared_kernel.execute("print('printed')\n5")
    assert (after.stdout, after.text, after.status) == ("printed\n", "5", "ok")


def run(kernel: Kernel, code: str) -> Reply:
    kernel.execute(f"script(Step(tool_calls=[('run_code', {{'code': {code!r}}})]), 'the end')", check=True)
    return kernel.execute("%%agent --new -o r\ngo")


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.stdout.close(); sys.stderr.close()",
        "import io, sys\nsys.stdout = io.StringIO()\nprint('lost')",
        "import sys\nsys.stdout = sys.stderr = None",
        "get_ipython = None",
        "del get_ipython",
        "import sys\nsys.displayhook = sys.excepthook = None\n1 / 0",
        "exit()",
        "raise SystemExit(3)",
        "raise GeneratorExit",
        "input('?')",
        "breakpoint()",
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)",
        "import asyncio\nasyncio.get_running_loop().close()",
        "import asyncio\nasyncio.set_event_loop(asyncio.new_event_loop())",
        "class Broken(Exception):\n    def __str__(self): raise ValueError\nraise Broken",
        "class Broken:\n    def __repr__(self): raise SystemExit\nBroken()",
        "def deep(): deep()\ndeep()",
        "bytearray(10 ** 15)",
        "plt.figure(); plt.plot([1, 2])",
        "'shown, and neither in Out nor in _'",
    ],
)
def test_the_kernel_is_as_before_and_the_turn_goes_on(kernel: Kernel, code: str) -> None:
    reply = run(kernel, code)
    assert reply.status == "ok"
    assert "the end" in shown(reply)


def test_code_that_cancels_everything_ends_the_turn_only(kernel: Kernel) -> None:
    reply = run(kernel, "import asyncio\nfor task in asyncio.all_tasks():\n    task.cancel()")
    assert reply.status == "ok"
    assert kernel.execute("r.status").text == "'interrupted'"


def test_names_wiped_out_by_the_code_do_not_break_the_cell(kernel: Kernel) -> None:
    kernel.execute("gone = 1", check=True)
    kernel.execute("script(Step(tool_calls=[('run_code', {'code': 'del gone, script'})]), 'the end')", check=True)
    reply = kernel.execute("%%agent --new\ngo")
    assert "gone, script deleted" in shown(reply).replace("script, gone", "gone, script")
    kernel.execute("def script(*steps):\n    register_model('scripted', ScriptedProvider(steps))", check=True)


def test_what_forked_children_print_is_not_lost(kernel: Kernel) -> None:
    reply = run(
        kernel,
        "import multiprocessing\ndef work(): print('from the child')\n"
        "child = multiprocessing.get_context('fork').Process(target=work)\nchild.start(); child.join(20)",
    )
    assert "from the child" in reply.stdout + shown(reply)


def test_fifty_megabytes_of_output_are_shortened(kernel: Kernel) -> None:
    reply = run(kernel, "import sys\nfor _ in range(50):\n    sys.stdout.write('y' * 1_000_000)\n'z' * 10_000_000")
    assert "the end" in shown(reply)
    assert len(str(reply.displays)) < 500_000


def test_ten_thousand_variables_do_not_slow_a_turn_down(kernel: Kernel) -> None:
    kernel.execute("many = {f'v{i}': list(range(i % 50)) for i in range(10_000)}\nglobals().update(many)", check=True)
    kernel.execute("script(*['fine'] * 5)", check=True)
    reply = kernel.execute("start = time.perf_counter()\nawait __import__('zq_notebook').ask('x', new=True)")
    assert reply.status == "ok"
    assert float(kernel.execute("time.perf_counter() - start").text) < 2
    kernel.execute("for name in many: del globals()[name]\ndel many", check=True)
