"""The table that comes with the tutorials is the one its script writes."""

from __future__ import annotations

import runpy
from pathlib import Path

DATA = Path(__file__).parents[2] / "notebooks" / "data"


def test_script_writes_the_committed_table_byte_for_byte(tmp_path: Path) -> None:
    script = runpy.run_path(str(DATA / "make_orders.py"))
    script["main"](tmp_path / "orders.csv")
    assert (tmp_path / "orders.csv").read_bytes() == (DATA / "orders.csv").read_bytes()
