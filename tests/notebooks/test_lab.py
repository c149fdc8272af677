"""``make lab``: the browser is sent to the quickstart notebook."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

# Called in place of a browser: keeps the page that would be opened, and ends the server that called.
BROWSER = """#!/bin/sh
cp "${1#file://}" "$0.page"
kill -TERM "$PPID"
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_lab_opens_the_browser_at_the_quickstart(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(BROWSER, encoding="utf-8")
    browser.chmod(0o755)
    # The environment that runs this test is installed; make must not install it again.
    make = ["make", "lab", "--old-file=.venv/lab.stamp", f"BIN={Path(sys.executable).parent}"]
    done = subprocess.run(
        make,
        cwd=REPOSITORY,
        env=os.environ | {"BROWSER": f"{browser} %s", "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime")},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    page = tmp_path / "browser.page"
    assert page.exists(), done.stderr
    assert re.search(r"/lab/tree/01_quickstart\.ipynb\b", page.read_text(encoding="utf-8"))
