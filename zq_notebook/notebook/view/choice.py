"""Which view a turn gets."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.view.base import TurnView
from zq_notebook.notebook.view.console import ConsoleView
from zq_notebook.notebook.view.live import LiveView
from zq_notebook.notebook.view.plain import PlainView

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def choose_view(
    shell: InteractiveShell, transcript: Transcript, attended: bool, on_stop: Callable[[], object]
) -> TurnView:
    """Text in a terminal, append-only outputs where nobody watches, else the live view.

    Where widgets are not installed the outputs are append-only too, and a paragraph says what to install.
    """
    kernel = getattr(shell, "kernel", None)
    if kernel is not None and not attended:
        return PlainView(transcript)
    if kernel is None or not _in_notebook(kernel):
        return ConsoleView(transcript)
    missing = LiveView.available()
    if missing is not None:
        print(missing)
        return PlainView(transcript)
    return LiveView(transcript, on_stop)


def _in_notebook(kernel: Any) -> bool:
    """Whether the code came from a cell of a document: JupyterLab, Notebook 7, VS Code and Colab say which one.

    ``jupyter console`` and qtconsole do not; they show text, and no updates of it.
    """
    return "cellId" in kernel.get_parent("shell").get("metadata", {}) or "google.colab" in sys.modules
