"""Which view a turn gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from zq_notebook.notebook.transcript import Transcript
from zq_notebook.notebook.view.base import TurnView
from zq_notebook.notebook.view.console import ConsoleView
from zq_notebook.notebook.view.live import LiveView
from zq_notebook.notebook.view.plain import PlainView

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def choose_view(
    shell: InteractiveShell, transcript: Transcript, attended: bool, on_stop: Callable[[], None]
) -> TurnView:
    """Text in a terminal, append-only outputs where nobody watches, else the live view.

    Where widgets are not installed the outputs are append-only too, and a paragraph says what to install.
    """
    if getattr(shell, "kernel", None) is None:
        return ConsoleView(transcript)
    if not attended:
        return PlainView(transcript)
    missing = LiveView.available()
    if missing is not None:
        print(missing)
        return PlainView(transcript)
    return LiveView(transcript, on_stop)
