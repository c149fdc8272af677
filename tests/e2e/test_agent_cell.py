"""``%%agent`` as a person uses it, in JupyterLab and Notebook 7."""

from __future__ import annotations

import re
import threading

from playwright.sync_api import Locator, expect

from tests.e2e.conftest import OpenNotebook
from tests.e2e.notebook_page import NotebookPage

LOAD = """\
%load_ext zq_notebook
from zq_notebook import ScriptedProvider, Step, register_model
def run(code): return [("run_code", {"code": code})]
def script(*steps): register_model("scripted", ScriptedProvider(steps))
%agent model scripted
"""


def loaded(*steps: str) -> str:
    """A first cell: everything loaded, and a model that plays ``steps``."""
    return f"{LOAD}script({', '.join(steps)})"


def card(notebook: NotebookPage, index: int) -> Locator:
    """The approval card of cell ``index``, on screen and past its guard against stray clicks."""
    group = notebook.output(index).locator(".zq-ask")
    expect(group).to_be_visible(timeout=30_000)
    expect(group).not_to_have_attribute("data-guarded", "")
    return group


def start(notebook: NotebookPage, index: int = 1) -> None:
    notebook.run(0)
    notebook.wait_done(0)
    notebook.run(index)


def click(notebook: NotebookPage, index: int, name: str) -> None:
    """Press a button of the card."""
    card(notebook, index).get_by_role("button", name=name, exact=True).click()


def test_the_answer_streams_and_the_transcript_stays(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook(
        [loaded("Step('The **first** part. ' + 'word ' * 60 + 'the end.', delay=0.02)"), "%%agent\ngo"]
    )
    start(notebook)
    notebook.wait_text(1, "first part")
    notebook.wait_running(1)
    notebook.wait_text(1, "the end.")
    notebook.wait_done(1)
    expect(notebook.output(1).locator("strong", has_text="first")).to_be_visible()
    saved = notebook.save()
    outputs = saved["cells"][1]["outputs"]
    assert [o["output_type"] for o in outputs] == ["display_data"]
    assert set(outputs[0]["data"]) == {"text/html", "text/markdown", "text/plain"}
    notebook.reload()
    notebook.wait_text(1, "the end.")
    expect(notebook.output(1).locator("strong", has_text="first")).to_be_visible()
    assert not notebook.console_errors, "\n".join(notebook.console_errors)


def test_allowed_code_runs_and_its_plot_is_in_the_transcript(open_notebook: OpenNotebook) -> None:
    code = "%matplotlib inline\\nimport matplotlib.pyplot as plt\\nx = 6 * 7\\nplt.plot([1, x])\\nprint(x)"
    notebook = open_notebook(
        [
            loaded(f"Step('I will compute.', tool_calls=run('{code}'))", "Step('It is 42.', expect='42')"),
            "%%agent\ngo",
            "x",
        ]
    )
    start(notebook)
    click(notebook, 1, "Allow once")
    notebook.wait_text(1, "It is 42.")
    notebook.wait_done(1)
    expect(notebook.output(1).locator("img")).to_have_count(1)
    notebook.wait_text(1, "allowed once")
    notebook.run(2)
    notebook.wait_text(2, "42")


def test_a_denial_with_a_typed_reason_reaches_the_model_whole(open_notebook: OpenNotebook) -> None:
    reason = "not on this table, please: use the copy"
    notebook = open_notebook(
        [
            loaded("Step(tool_calls=run('x = 1'))", f"Step('Understood.', expect={reason!r})"),
            "%%agent\ngo",
            "'x' in dir()",
        ]
    )
    start(notebook)
    field = card(notebook, 1).get_by_placeholder(re.compile("Reason"))
    field.click()
    field.press_sequentially(reason, delay=15)
    expect(field).to_have_value(reason)
    click(notebook, 1, "Deny")
    notebook.wait_text(1, "Understood.")
    notebook.wait_done(1)
    notebook.wait_text(1, f"denied: {reason}")
    notebook.run(2)
    notebook.wait_text(2, "False")


def test_a_field_of_the_users_own_gets_every_character_while_an_approval_waits(open_notebook: OpenNotebook) -> None:
    field = "import ipywidgets\nfield = ipywidgets.Text(placeholder='mine')\nfield"
    notebook = open_notebook(
        [loaded("Step(tool_calls=run('x = 1'))", "'done now'"), field, "%%agent\ngo", "print(field.value)"]
    )
    notebook.run(0)
    notebook.wait_done(0)
    notebook.run(1)
    mine = notebook.output(1).get_by_placeholder("mine")
    expect(mine).to_be_visible()
    notebook.run(2)
    card(notebook, 2)
    mine.click()
    mine.press_sequentially("typed while it waits", delay=20)
    click(notebook, 2, "Allow once")
    notebook.wait_text(2, "done now")
    notebook.run(3)
    notebook.wait_text(3, "typed while it waits")


def test_always_this_tool_is_asked_once(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook(
        [loaded("Step(tool_calls=run('n = 1'))", "Step(tool_calls=run('n += 1'))", "'done now'"), "%%agent\ngo", "n"]
    )
    start(notebook)
    click(notebook, 1, "Always this tool")
    notebook.wait_text(1, "done now")
    notebook.run(2)
    notebook.wait_text(2, "2")


def test_stop_works_while_an_approval_waits(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook([loaded("Step(tool_calls=run('x = 1'))", "'never'"), "%%agent\ngo", "'x' in dir()"])
    start(notebook)
    card(notebook, 1)
    notebook.output(1).get_by_role("button", name="Stop").click()
    notebook.wait_done(1, timeout=5_000)
    notebook.wait_text(1, "interrupted")
    expect(notebook.output(1)).not_to_contain_text("Traceback")
    notebook.run(2)
    notebook.wait_text(2, "False")


def test_the_kernels_stop_button_works_while_an_approval_waits(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook([loaded("Step(tool_calls=run('x = 1'))", "'never'"), "%%agent\ngo"])
    start(notebook)
    card(notebook, 1)
    notebook.interrupt()
    notebook.wait_done(1, timeout=5_000)
    notebook.wait_text(1, "interrupted")
    expect(notebook.output(1)).not_to_contain_text("Traceback")


def test_the_kernels_stop_button_stops_running_code(open_notebook: OpenNotebook) -> None:
    code = "import time\\nprint(\\'begun\\')\\nt = 0\\nwhile True:\\n    time.sleep(0.05); t += 1"
    notebook = open_notebook([loaded(f"Step(tool_calls=run('{code}'))", "'never'"), "%%agent --mode auto\ngo", "t > 0"])
    start(notebook)
    notebook.wait_text(1, re.compile("run_code"))
    notebook.wait_running(1)
    notebook.page.wait_for_function(
        "() => [...document.querySelectorAll('.jp-Cell')][1].innerText.includes('running')", timeout=10_000
    )
    notebook.interrupt()
    notebook.wait_done(1, timeout=8_000)
    notebook.wait_text(1, "interrupted")
    notebook.run(2)
    notebook.wait_text(2, "True")


def test_stop_works_while_code_keeps_the_kernel_busy(open_notebook: OpenNotebook) -> None:
    code = "import time\\nt = 0\\nwhile t < 1200:\\n    time.sleep(0.05); t += 1"
    notebook = open_notebook(
        [loaded(f"Step(tool_calls=run('{code}'))", "'never'"), "%%agent --mode auto\ngo", "t < 1200"]
    )
    start(notebook)
    expect(notebook.output(1)).to_contain_text("running", timeout=15_000)
    notebook.output(1).get_by_role("button", name="Stop").click()
    notebook.wait_done(1, timeout=8_000)
    notebook.wait_text(1, "interrupted")
    notebook.run(2)
    notebook.wait_text(2, "True")


def test_stop_works_while_awaiting_code_runs(open_notebook: OpenNotebook) -> None:
    code = "import asyncio\\nawait asyncio.sleep(600)"
    notebook = open_notebook([loaded(f"Step(tool_calls=run('{code}'))", "'never'"), "%%agent --mode auto\ngo"])
    start(notebook)
    expect(notebook.output(1).get_by_role("button", name="Stop")).to_be_visible()
    notebook.page.wait_for_function(
        "() => [...document.querySelectorAll('.jp-Cell')][1].innerText.includes('running')", timeout=10_000
    )
    notebook.output(1).get_by_role("button", name="Stop").click()
    notebook.wait_done(1, timeout=8_000)
    notebook.wait_text(1, "interrupted")


def test_stop_works_while_the_model_streams(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook([loaded("Step('word ' * 2000, delay=0.05)"), "%%agent\ngo"])
    start(notebook)
    notebook.wait_text(1, "word word")
    notebook.output(1).get_by_role("button", name="Stop").click()
    notebook.wait_done(1, timeout=5_000)
    notebook.wait_text(1, "interrupted")
    notebook.wait_text(1, "word word")


def test_run_all_plays_three_agent_cells_in_order(open_notebook: OpenNotebook) -> None:
    steps = "Step('one', delay=0.1)", "Step(tool_calls=run('seen = [2]'))", "'two'", "Step('three', expect='third')"
    notebook = open_notebook(
        [
            loaded(*steps),
            "%%agent\nfirst",
            "%%agent --mode auto\nsecond",
            "%%agent\nthird",
            "seen.append(4); print(seen)",
        ]
    )
    notebook.run_all()
    for index, text in enumerate(["one", "two", "three", "[2, 4]"], 1):
        notebook.wait_text(index, text)
        notebook.wait_done(index)


def test_the_kernels_stop_button_ends_run_all(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook([loaded("Step('word ' * 2000, delay=0.05)"), "%%agent\ngo", "print('must not run')"])
    notebook.run_all()
    notebook.wait_text(1, "word word")
    notebook.interrupt()
    notebook.wait_done(1, timeout=5_000)
    notebook.wait_idle()
    expect(notebook.output(2)).not_to_contain_text("must not run")


def test_a_failed_turn_ends_run_all_with_one_paragraph(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook([LOAD, "%%agent -m gpt-none\ngo", "print('must not run')"])
    notebook.run_all()
    notebook.wait_text(1, "OPENAI_API_KEY is not set")
    notebook.wait_idle()
    expect(notebook.output(1).get_by_text("OPENAI_API_KEY is not set")).to_have_count(1)
    expect(notebook.output(1)).not_to_contain_text("Traceback")
    expect(notebook.output(2)).not_to_contain_text("must not run")


def test_a_closed_tab_does_not_keep_a_turn_from_being_stopped(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook([loaded("Step(tool_calls=run('x = 1'))", "'never'"), "%%agent\ngo", "'x' in dir()"])
    start(notebook)
    card(notebook, 1)
    notebook.page.goto("about:blank")
    assert notebook.kernel_state() == "busy"
    session = notebook.server.session_of(notebook.path)
    assert session is not None
    notebook.server.api(f"kernels/{session['kernel']['id']}/interrupt", "POST")
    pause = threading.Event()
    for _ in range(100):
        if notebook.kernel_state() == "idle":
            break
        pause.wait(0.1)  # the server tells a kernel's state only when asked
    assert notebook.kernel_state() == "idle"


def test_a_card_is_there_again_after_a_reload(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook([loaded("Step(tool_calls=run('x = 5'))", "'done now'"), "%%agent\ngo", "x"])
    start(notebook)
    card(notebook, 1)
    notebook.save()
    notebook.page.reload()  # the kernel is busy, so the page is not "ready" before the card is answered
    click(notebook, 1, "Allow once")
    notebook.wait_idle()
    notebook.run(2)
    notebook.wait_text(2, "5")
