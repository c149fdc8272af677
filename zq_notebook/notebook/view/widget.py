"""The one widget of a running cell. Import it only when it is needed: it brings ipywidgets."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import anywidget

from zq_notebook.notebook.transcript_html import style_sheet

_HERE = files("zq_notebook.notebook.view")


class CellWidget(anywidget.AnyWidget):
    """Draws what :class:`CellStream` sends. Everything travels by custom messages; no trait changes after creation."""

    _esm = _HERE.joinpath("cell.js").read_text(encoding="utf-8")
    _css = style_sheet() + _HERE.joinpath("cell.css").read_text(encoding="utf-8")

    def __init__(self, on_message: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self.on_msg(lambda _, content, __: on_message(content))

    def view_bundle(self, plain: str) -> dict[str, Any]:
        """A MIME bundle that shows this widget, or ``plain`` where there are no widgets."""
        reference = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return {"text/plain": plain, "application/vnd.jupyter.widget-view+json": reference}
