"""Without a kernel: the terminal's shell, and plain scripts."""

from __future__ import annotations

import subprocess
import sys

from tests.integration.harness import SETUP

SCRIPT = """
import sys
from IPython.terminal.interactiveshell import TerminalInteractiveShell
shell = TerminalInteractiveShell.instance()
shell.run_cell(SETUP)
from zq_notebook.notebook.main_thread import run_to_end
harness = shell.user_ns['zq_harness']

def run(code, **arguments):
    (out,) = run_to_end(harness.play(harness.calls([('run_code', {'code': code, **arguments})])))
    return out

def check(condition, what):
    if not condition:
        sys.exit(f'failed: {what}')
"""


def _run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"SETUP = {SETUP!r}\n{SCRIPT}\n{script}\nprint('all good')"],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("all good\n")
    return done.stdout


def test_code_runs_and_is_captured_in_the_terminals_shell() -> None:
    shown = _run(
        "out = run('print(\"printed\")\\nx = 5\\nx * 2')\n"
        "check('stdout:\\nprinted' in out.text and 'result:\\n10' in out.text, out.text)\n"
        "check(shell.user_ns['x'] == 5, 'x')\n"
        "out = run('1/0')\n"
        "check(out.error_type == 'ZeroDivisionError', out.text)\n"
        'out = run(\'import asyncio; await asyncio.sleep(0); display({"text/plain": "shown"}, raw=True)\')\n'
        "check('shown' in out.text, out.text)\n"
        "out = run('exit()')\n"
        "check(out.error_type == 'ExitRefusedError', out.text)\n"
        "out = run('import time; time.sleep(60)', timeout=1)\n"
        "check(out.error_type == 'TimeoutError', out.text)\n"
    )
    assert shown == "all good\n"


def test_ctrl_c_in_a_script_stops_the_turn_without_a_traceback() -> None:
    _run(
        "import os, signal\n"
        "harness.tick = lambda: os.kill(os.getpid(), signal.SIGINT) if not harness.presses else None\n"
        "async def engine():\n    await harness.token.wait_async()\n    return 'ended'\n"
        "check(run_to_end(harness.play(engine())) == 'ended', 'ended')\n"
        "check(harness.presses == 1, 'presses')\n"
        "check(signal.getsignal(signal.SIGINT) is signal.default_int_handler, 'handler')"
    )


def test_inside_a_running_loop_it_runs_to_its_end_too() -> None:
    _run(
        "import asyncio\n"
        "async def cell():\n"
        "    here = asyncio.current_task()\n"
        "    out = run('6 * 7')\n"
        "    check('42' in out.text, out.text)\n"
        "    check(asyncio.current_task() is here, 'task')\n"
        "    await asyncio.sleep(0)\n"
        "asyncio.run(cell())"
    )
