"""``run_code`` in a real kernel: what reaches the model, what reaches the cell, and what never happens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.harness import SETUP, call, outputs_of, run_code, start_code
from tests.integration.kernel import Kernel, running_kernel


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with running_kernel() as started:
        started.execute(SETUP, check=True)
        yield started


def test_output_goes_to_the_tool_and_not_twice_into_the_cell(kernel: Kernel) -> None:
    out, cell = run_code(kernel, "import sys\nprint('to out')\nprint('to err', file=sys.stderr)\n6 * 7")
    assert "stdout:\nto out" in out["text"]
    assert "stderr:\nto err" in out["text"]
    assert "result:\n42" in out["text"]
    assert out["ok"]
    assert (cell.stdout, cell.stderr, cell.result, cell.displays) == ("", "", None, [])


def test_the_users_history_and_underscore_stay_as_they_were(kernel: Kernel) -> None:
    kernel.execute("'mine'", check=True)
    before = kernel.execute("get_ipython().execution_count, len(Out), _").text
    run_code(kernel, "12345")
    after = kernel.execute("get_ipython().execution_count - 2, len(Out) - 1, Out[max(Out) - 0] if 0 else 'mine'").text
    assert before == after


def test_variables_are_shared_with_the_user(kernel: Kernel) -> None:
    kernel.execute("mine = [1, 2]", check=True)
    run_code(kernel, "mine.append(3)\nyours = 'agent'")
    assert kernel.execute("mine, yours").text == "([1, 2, 3], 'agent')"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import asyncio\nawait asyncio.sleep(0)\n'awaited'", "'awaited'"),
        ("%%bash\necho from bash", "from bash"),
        ("!echo from shell", "from shell"),
        ("import os; os.system('echo deep; sleep 0.05; echo late');", "deep\nlate"),
        ("%%time\nsum(range(10))", "45"),
        ("%pip --version", "pip "),
        ("x = 3\nx?", "int"),
        (
            "import threading\nt = threading.Thread(target=print, args=('in a thread',)); t.start(); t.join()",
            "in a thread",
        ),
        ("import asyncio\nasync def f(): print('in a task')\nawait asyncio.create_task(f())", "in a task"),
        ("import asyncio\nawait asyncio.to_thread(print, 'in to_thread')", "in to_thread"),
        ("import logging; logging.getLogger('held').warning('heard')", "heard"),
        ("print(chr(0xD800) + 'broken')", "broken"),
        ("print('\\x1b[31mred\\x1b[0m')", "stdout:\nred\n"),
        ("5;", "No output"),
        (
            "from IPython.display import clear_output\nprint('old'); clear_output(wait=True); print('new')",
            "stdout:\nnew",
        ),
    ],
)
def test_cell_semantics(kernel: Kernel, code: str, expected: str) -> None:
    out, cell = run_code(kernel, code)
    assert expected in out["text"], out["text"]
    assert out["ok"]
    assert cell.stdout == ""


def test_a_logger_that_holds_the_old_stream_is_heard(kernel: Kernel) -> None:
    kernel.execute(
        "import logging, sys\nlog = logging.getLogger('x'); log.addHandler(logging.StreamHandler(sys.stderr))"
    )
    out, cell = run_code(kernel, "log.warning('from the old handler')")
    assert "from the old handler" in out["text"]
    assert cell.stderr == ""


def test_the_users_own_thread_keeps_printing_into_the_cell(kernel: Kernel) -> None:
    kernel.execute(
        "import threading\ngo, done = threading.Event(), threading.Event()\n"
        "def _mine():\n    go.wait(); print('users thread'); done.set()\n"
        "threading.Thread(target=_mine, daemon=True).start()",
        check=True,
    )
    out, cell = run_code(kernel, "go.set(); done.wait(5)")
    assert "users thread" not in out["text"]
    assert "users thread" in cell.stdout


def test_a_widget_callback_during_the_code_prints_into_the_cell(kernel: Kernel) -> None:
    kernel.execute(
        "import asyncio, comm\nreached = asyncio.Event()\n"
        "def _opened(c, msg):\n"
        "    @c.on_msg\n    def _(m):\n        print('callback'); reached.set()\n"
        "comm.get_comm_manager().register_target('t.print', _opened)",
        check=True,
    )
    kernel.send("comm_open", {"comm_id": "c1", "target_name": "t.print", "data": {}})
    run = start_code(kernel, "print('waiting'); await reached.wait()")
    run.wait_for_message(lambda m: m["msg_type"] == "execute_input")
    kernel.send("comm_msg", {"comm_id": "c1", "data": {}})
    reply = run.finish()
    (out,), _ = outputs_of(reply)
    assert "waiting" in out["text"]
    assert "callback" not in out["text"]
    assert any("callback" in m["content"].get("text", "") for m in reply.messages if m["msg_type"] == "stream")


@pytest.mark.parametrize(
    ("code", "ename", "place"),
    [
        ("1 / 0", "ZeroDivisionError", "line 1"),
        ("a = 1\nb = (", "SyntaxError", "line 2"),
        ("def f(n): return f(n + 1)\nf(0)", "RecursionError", "more frames"),
        ("%nosuchmagic", "UsageError", ""),
        ("raise ExceptionGroup('g', [ValueError('one')])", "ExceptionGroup", "1. ValueError: one"),
        ("import json\njson.loads('{')", "JSONDecodeError", "raised in python3.11/json/decoder.py"),
        ("class E(Exception):\n    def __str__(self): raise OSError\nraise E", "E", "could not be made: OSError"),
    ],
)
def test_errors_are_short_and_without_colour(kernel: Kernel, code: str, ename: str, place: str) -> None:
    out, cell = run_code(kernel, code)
    assert out["error_type"] == ename
    assert place.replace("python3.11/", "") in out["text"].replace("python3.11/", "")
    assert "\x1b" not in out["text"]
    assert len(out["text"]) < 3000
    assert not out["ok"]
    assert cell.error is None
    assert cell.status == "ok"


@pytest.mark.parametrize("code", ["exit()", "quit", "import sys; sys.exit(1)", "raise SystemExit"])
def test_exit_does_not_end_the_kernel(kernel: Kernel, code: str) -> None:
    run_code(kernel, f"before_exit = {code!r}")
    out, _ = run_code(kernel, code)
    assert out["error_type"] in ("ExitRefusedError", "SystemExit")
    assert "To exit:" not in out["text"]
    assert kernel.execute("before_exit").text == repr(code)


@pytest.mark.parametrize("code", ["input('?')", "import getpass; getpass.getpass()", "breakpoint()"])
def test_input_is_refused_at_once(kernel: Kernel, code: str) -> None:
    reply = kernel.start(f"await zq_harness.tools([('run_code', {{'code': {code!r}}})])", allow_stdin=True).finish()
    (out,), _ = outputs_of(reply)
    assert out["error_type"] == "StdinNotImplementedError"
    assert "cannot ask for input" in out["text"]
    assert kernel.execute("input('name? ')", answers=("me",)).text == "'me'"


@pytest.mark.parametrize("code", ["%%agent\ndo more", "x = 1\n%agent status"])
def test_an_agent_inside_the_agents_code_is_refused(kernel: Kernel, code: str) -> None:
    out, _ = run_code(kernel, code)
    assert "cannot start or steer an agent" in out["text"]


def test_code_that_replaces_stdout_leaves_it_as_it_was(kernel: Kernel) -> None:
    out, _ = run_code(kernel, "import io, sys\nsys.stdout = io.StringIO()\nprint('lost')")
    assert "have been put back" in out["text"]
    assert kernel.execute("print('still here')").stdout == "still here\n"
    assert "still here" in run_code(kernel, "print('still here')")[0]["text"]


def test_a_hundred_megabytes_of_output_stay_bounded(kernel: Kernel) -> None:
    out, _ = run_code(
        kernel,
        "import resource\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "line = 'x' * 999\n"
        "print('first line')\n"
        "for _ in range(100_000): print(line)\n"
        "print('last line')\n"
        "grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before",
        timeout=60,
    )
    grown_kb = int(kernel.execute("grown_kb").text)
    assert grown_kb < 20_000
    assert "first line" in out["text"]
    assert "characters left out" in out["text"] or "cut" in out["text"]
    assert len(out["text"]) < 40_000


def test_progress_bars_keep_their_last_state(kernel: Kernel) -> None:
    out, _ = run_code(kernel, "for i in range(101): print(f'\\r{i:3d}%|bar', end='')\nprint()")
    assert out["text"].count("%|bar") == 1
    assert "100%|bar" in out["text"]


def test_what_a_card_cannot_hold_is_shown_in_the_cell(kernel: Kernel) -> None:
    out, cell = run_code(
        kernel,
        "from IPython.display import HTML, display\n"
        "display(HTML('<b>quiet</b>'))\n"
        "display(HTML('<script>alert(1)</script>'))\n"
        "display({'application/vnd.plotly.v1+json': {'data': []}, 'text/plain': 'Figure'}, raw=True)\n"
        "display({'application/vnd.jupyter.widget-view+json': {'model_id': 'm'}, 'text/plain': 'W'}, raw=True)",
    )
    kinds = [set(bundle) - {"text/plain"} for bundle in cell.displays]
    assert kinds == [
        {"text/html"},
        {"application/vnd.plotly.v1+json"},
        {"application/vnd.jupyter.widget-view+json"},
    ]
    assert "a Plotly figure" in out["text"]
    assert "a widget" in out["text"]
    assert "quiet" in out["text"]


def test_updated_displays_count_once(kernel: Kernel) -> None:
    out, cell = run_code(kernel, "h = display('one', display_id=True)\nh.update('two')")
    assert "two" in out["text"]
    assert "one" not in out["text"]
    assert cell.displays == []


def test_table_as_result_is_html_on_the_card_and_text_for_the_model(kernel: Kernel) -> None:
    out, cell = run_code(kernel, "import pandas as pd\npd.DataFrame({'price': [1.5, 2.5]})")
    assert "1.5" in out["text"]
    assert "<table" not in out["text"]
    assert "<table" in out["display"]["text/html"]
    assert cell.displays == []


def test_ten_plots_in_a_loop_all_arrive(kernel: Kernel) -> None:
    out, cell = run_code(
        kernel,
        "import matplotlib.pyplot as plt\n"
        "for i in range(10):\n    plt.figure(figsize=(2, 2)); plt.plot([0, i]); plt.title(i)",
        timeout=60,
    )
    assert len(out["images"]) == 10
    assert cell.displays == []
    assert kernel.execute("plt.get_fignums()").text == "[]"


@pytest.mark.parametrize("ending", ["", "plt.show()", "plt.close('all')"])
def test_the_users_half_built_figure_is_neither_shown_nor_closed(kernel: Kernel, ending: str) -> None:
    code = f"import matplotlib.pyplot as plt\nplt.figure(); plt.plot([1, 2])\n{ending}"
    reply = kernel.start(
        "import matplotlib.pyplot as plt\nfig = plt.figure(); plt.plot([3, 4])\n"
        f"await zq_harness.tools([('run_code', {{'code': {code!r}}})])\n"
        "print('open:', plt.get_fignums(), plt.gcf() is fig)"
    ).finish()
    (out,), _ = outputs_of(reply)
    assert "open: [1] True" in reply.stdout
    assert len(out["images"]) == (0 if "close" in ending else 1)
    assert len(reply.displays) == 1  # the user's own, at the end of the user's cell


def test_a_figure_that_is_too_large_for_a_model_is_made_smaller(kernel: Kernel) -> None:
    out, _ = run_code(
        kernel,
        "import io\nfrom PIL import Image\nfrom IPython.display import Image as Shown, display\n"
        "buffer = io.BytesIO(); Image.effect_noise((3000, 3000), 90).save(buffer, 'PNG')\n"
        "display(Shown(data=buffer.getvalue()))",
    )
    assert len(out["images"]) == 1
    assert out["images"][0] < 3_000_001


def test_sync_code_is_stopped_at_the_time_limit(kernel: Kernel) -> None:
    out, _ = run_code(kernel, "import time\nprint('began')\nreached = 1\ntime.sleep(60)\nreached = 2", timeout=1)
    assert out["error_type"] == "TimeoutError"
    assert "STOPPED" in out["text"]
    assert "time limit of 1 s" in out["text"]
    assert "began" in out["text"]
    assert "line 4" in out["text"]
    assert kernel.execute("reached").text == "1"


def test_async_code_is_stopped_at_the_time_limit(kernel: Kernel) -> None:
    out, _ = run_code(kernel, "import asyncio\nprint('began')\nawait asyncio.sleep(60)", timeout=1)
    assert out["error_type"] == "TimeoutError"
    assert "began" in out["text"]


def test_a_blocking_task_that_the_code_started_is_stopped_and_the_kernel_lives(kernel: Kernel) -> None:
    out, _ = run_code(
        kernel,
        "import asyncio, time\nasync def busy():\n    while True: time.sleep(0.01)\n"
        "await asyncio.gather(busy(), busy())",
        timeout=1,
    )
    assert out["error_type"] == "TimeoutError"
    assert kernel.execute("1 + 1").text == "2"


def test_code_that_ignores_interrupts_is_reported_as_still_running(kernel: Kernel) -> None:
    stubborn = (
        "import time\nprint('stubborn')\nend = time.monotonic() + 7\n"
        "while time.monotonic() < end:\n    try:\n        time.sleep(0.05)\n    except KeyboardInterrupt: pass"
    )
    cell = f"await zq_harness.tools([('run_code', {{'code': {stubborn!r}, 'timeout': 1}}), ('list_variables', {{}})])"
    (out, second), _ = outputs_of(kernel.start(cell).finish())
    assert out["error_type"] == "StillRunning"
    assert "STILL RUNNING" in out["text"]
    assert "stubborn" in out["text"]
    assert not second["ok"]
    assert "still busy" in second["text"]
    assert "1 + 1" not in run_code(kernel, "1 + 1")[0]["text"]
    assert kernel.execute("1 + 1").text == "2"


def test_async_code_that_ignores_cancellation_is_reported_too(kernel: Kernel) -> None:
    out, _ = run_code(
        kernel,
        "import asyncio\nfor _ in range(80):\n    try:\n        await asyncio.sleep(0.1)\n"
        "    except asyncio.CancelledError: pass",
        timeout=1,
    )
    assert out["error_type"] == "StillRunning"
    assert "2" in run_code(kernel, "1 + 1")[0]["text"]


def test_longer_time_limit_than_allowed_is_cut(kernel: Kernel) -> None:
    out, _ = run_code(kernel, "1", timeout=1_000_000)
    assert "3600 s, the most that is allowed" in out["text"]


def test_unknown_argument_is_refused_by_the_schema(kernel: Kernel) -> None:
    out, _ = call(kernel, "run_code", code="1", nonsense=2)
    assert not out["ok"]
