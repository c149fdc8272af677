"""The quickstart notebook with a person in front of it, who is asked and answers."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from tests.e2e.conftest import OpenNotebook

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("front_end", ["lab"], indirect=True)
def test_quickstart_asks_twice_and_ends_with_other_words_than_unattended(open_notebook: OpenNotebook) -> None:
    document = nbformat.read(NOTEBOOKS / "01_quickstart.ipynb", as_version=4)
    cells = {cell.id: cell.source for cell in document.cells if cell.cell_type == "code"}
    place = {name: number for number, name in enumerate(cells)}
    orders = (NOTEBOOKS / "data" / "orders.csv").read_text(encoding="utf-8")
    notebook = open_notebook(list(cells.values()), files={"data/orders.csv": orders})
    notebook.run_all()

    notebook.answer(place["look"], "Allow once")
    notebook.wait_text(place["look"], "24 rows stand in the table twice")
    notebook.wait_text(place["why"], "West fell by 44.8 %")
    expect(notebook.output(place["why"]).locator("img")).to_be_visible()
    notebook.answer(place["file"], "Allow once")
    notebook.wait_text(place["result"], "completed ['west.md']")
    notebook.wait_text(place["open"], re.compile("Is June complete?"))
    notebook.wait_done(place["open"])
    assert not notebook.console_errors, "\n".join(notebook.console_errors)
