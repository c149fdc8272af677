"""Matplotlib's inline figures: the agent's are collected, the user's stay as they are.

The inline backend shows and closes *every* open figure whenever a ``post_execute`` event comes and some figure was
made since the last one; ipywidgets triggers that event for each message it handles. Nothing here imports matplotlib.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def _inline() -> Any | None:
    return sys.modules.get("matplotlib_inline.backend_inline")


def _open_figures() -> dict[int, Any] | None:
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return None if helpers is None else helpers.Gcf.figs


@contextmanager
def half_built_figures_kept() -> Iterator[None]:
    """While a cell waits for the agent, a click on a widget must not show and close the figures it was building."""
    inline = _inline()
    if inline is None or not (hasattr(inline.show, "_draw_called") and hasattr(inline.show, "_to_draw")):
        yield
        return
    drawn, to_draw = inline.show._draw_called, list(inline.show._to_draw)
    inline.show._draw_called, inline.show._to_draw = False, []
    try:
        yield
    finally:
        inline.show._draw_called = inline.show._draw_called or drawn
        inline.show._to_draw = to_draw + [figure for figure in inline.show._to_draw if figure not in to_draw]


@contextmanager
def own_figures() -> Iterator[Callable[[], None]]:
    """Run code between the user's figures. Yields the function that shows the code's own, and closes those.

    With ``InlineBackend.close_figures`` (the default) the figures that are open before are set aside, so that neither
    ``plt.show()`` nor ``plt.close("all")`` reaches them. Without it they stay in reach: then the user keeps figures
    open in order to go on with them, and showing closes nothing.
    """
    with half_built_figures_kept():
        figures = _open_figures()
        aside: dict[int, Any] = {}
        if figures and _closes_figures():
            aside = dict(figures)
            figures.clear()
        try:
            yield _flush
        finally:
            _put_back(aside)


def _closes_figures() -> bool:
    inline = _inline()
    return inline is not None and bool(inline.InlineBackend.instance().close_figures)


def _flush() -> None:
    """Show what the code drew, as the inline backend does after a cell."""
    inline = _inline()
    if inline is not None:
        inline.flush_figures()


def _put_back(aside: dict[int, Any]) -> None:
    """Open the user's figures again under their numbers; a figure of the code that took one gets the next free."""
    figures = _open_figures()
    if figures is None or not aside:
        return
    left_over = list(figures.values())
    figures.clear()
    taken = set(aside)
    for manager in left_over:
        if manager.num in taken:
            manager.num = max(taken) + 1
            manager.canvas.figure._number = manager.num
        taken.add(manager.num)
        figures[manager.num] = manager
    figures.update(aside)  # last: the figure that was current stays current
