"""``%agent autoload``: have every new kernel of this IPython profile load zq_notebook by itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_STARTUP = """\
# Written by "%agent autoload on"; "%agent autoload off" removes it.
try:
    get_ipython().run_line_magic("load_ext", "zq_notebook")
except ImportError:
    pass  # this profile is also used by environments without zq_notebook
"""


def startup_file(shell: InteractiveShell) -> Path:
    """The file that IPython runs when a kernel starts."""
    assert shell.profile_dir is not None
    return Path(shell.profile_dir.startup_dir) / "50-zq_notebook.py"


def set_autoload(shell: InteractiveShell, on: bool) -> None:
    """Write or remove the startup file."""
    path = startup_file(shell)
    if on:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_STARTUP, encoding="utf-8")
    else:
        path.unlink(missing_ok=True)
