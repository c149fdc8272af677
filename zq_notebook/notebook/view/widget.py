"""The one widget of a running cell. Import it only when it is needed: it brings ipywidgets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import anywidget

from zq_notebook.notebook.transcript_html import compact_css

_HERE = files("zq_notebook.notebook.view")


_CODE = "\n".join(
    _HERE.joinpath(name).read_text(encoding="utf-8")
    for name in ("cell_dom.js", "cell_text.js", "cell_cards.js", "cell.js")
)
_STYLE = compact_css(_HERE.joinpath("transcript.css").read_text(encoding="utf-8")) + compact_css(
    _HERE.joinpath("cell.css").read_text(encoding="utf-8")
)
_KEY = "zq_notebook-" + hashlib.sha256((_CODE + _STYLE).encode()).hexdigest()[:12]


class CellWidget(anywidget.AnyWidget):
    """Draws what :class:`CellStream` sends. Everything travels by custom messages; no trait changes after creation.

    The widget's own module only fetches the drawing code, once per page: every cell would carry it otherwise.
    """

    _esm = _HERE.joinpath("loader.js").read_text(encoding="utf-8").replace("KEY", _KEY)

    def __init__(self, on_message: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self.on_msg(lambda _, content, __: on_message(content))

    def send_code(self) -> None:
        """Send the drawing code, which a page asks for once."""
        self.send({"code": _CODE, "style": _STYLE})

    def view_bundle(self, plain: str) -> dict[str, Any]:
        """A MIME bundle that shows this widget, or ``plain`` where there are no widgets."""
        reference = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        return {"text/plain": plain, "application/vnd.jupyter.widget-view+json": reference}
