"""The browser fixtures themselves: a plain cell, in both front ends."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.e2e.conftest import OpenNotebook


def test_plain_cell_shows_its_output_and_is_saved(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook(["print('six times', 6 * 7)"])
    notebook.run(0)
    notebook.wait_text(0, "six times 42")
    notebook.wait_done(0)
    notebook.wait_idle()
    assert notebook.kernel_state() == "idle"

    saved = notebook.save()
    assert saved["cells"][0]["outputs"][0]["text"] == ["six times 42\n"]

    notebook.reload()
    notebook.wait_text(0, "six times 42")
    assert not notebook.console_errors, "\n".join(notebook.console_errors)


def test_run_all_runs_cells_in_order_and_interrupt_stops_one(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook(
        ["seen = [1]", "seen.append(2); print(seen)", "import threading; print('waiting'); threading.Event().wait(60)"]
    )
    notebook.run_all()
    notebook.wait_text(1, "[1, 2]")
    notebook.wait_text(2, "waiting")
    notebook.wait_running(2)
    assert notebook.kernel_state() == "busy"

    notebook.interrupt()
    notebook.wait_text(2, "KeyboardInterrupt")
    notebook.wait_done(2)


def test_restarted_kernel_has_forgotten(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook(["x = 1; print('set')", "print('x' in globals())"])
    notebook.run(0)
    notebook.wait_text(0, "set")
    notebook.restart_kernel()
    notebook.run(1)
    notebook.wait_text(1, "False")


def test_edit_replaces_the_source(open_notebook: OpenNotebook) -> None:
    notebook = open_notebook(["1 + 1"])
    notebook.edit(0, "print('typed')")
    expect(notebook.cell(0).locator(".cm-content")).to_have_text("print('typed')")
    notebook.run(0)
    notebook.wait_text(0, "typed")
