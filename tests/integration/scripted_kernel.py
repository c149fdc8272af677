"""A real kernel with the extension loaded and a model that follows a script.

with scripted_kernel() as kernel:
    kernel.execute("script(Step('Four.'))")
    reply = kernel.execute("%%agent -m scripted\\nHow much is two and two?")
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tests.integration.kernel import Kernel, Reply, running_kernel

SETUP = """
import os, sys, time
from zq_notebook import ScriptedProvider, Step, register_model
def script(*steps):
    register_model("scripted", ScriptedProvider(steps))
def asked():
    from zq_notebook.assembly import provider_for
    return provider_for("scripted").requests
"""


@contextlib.contextmanager
def scripted_kernel(**options: Any) -> Iterator[Kernel]:
    """A kernel as :func:`running_kernel`, ready for ``script(…)`` and ``%%agent -m scripted``."""
    with running_kernel(**options) as kernel:
        kernel.execute("%load_ext zq_notebook", check=True)
        kernel.execute(SETUP, check=True)
        yield kernel


def shown(reply: Reply) -> str:
    """Everything in the cell's outputs, as plain text."""
    return "\n".join(str(display["text/plain"]) for display in reply.displays)


def complaint(reply: Reply) -> str:
    """The one paragraph with which a cell failed; the test fails when there is more, less, or a traceback."""
    errors = [message["content"]["traceback"] for message in reply.messages if message["msg_type"] == "error"]
    assert reply.status == "error", shown(reply)
    assert len(errors) == 1
    assert len(errors[0]) == 1, "\n".join(errors[0])
    assert "\n" not in errors[0][0]
    assert reply.stderr == ""
    return str(errors[0][0])
