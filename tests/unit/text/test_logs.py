"""No logger of the package lets a key through, whoever listens."""

from __future__ import annotations

import subprocess
import sys

LOG_A_KEY_EVERYWHERE = """
import importlib, logging, pkgutil
import zq_notebook
for module in pkgutil.walk_packages(zq_notebook.__path__, "zq_notebook."):
    importlib.import_module(module.name)
logging.basicConfig(level=logging.DEBUG, format="%(name)s %(message)s")
ours = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "zq_notebook"]
for name in ours:
    if isinstance(logging.root.manager.loggerDict[name], logging.Logger):
        try:
            raise ValueError("refused sk-proj-4fT9xQ2mZ7wLk1Vb8nRc")
        except ValueError:
            logging.getLogger(name).exception("asked with %s", "sk-proj-4fT9xQ2mZ7wLk1Vb8nRc")
"""


def test_every_logger_of_the_package_masks_keys_before_any_provider_is_made() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOG_A_KEY_EVERYWHERE], capture_output=True, text=True, check=True, timeout=50
    )
    for name in ("zq_notebook", "zq_notebook.engine", "zq_notebook.hooks", "zq_notebook.tools", "zq_notebook.notebook"):
        assert f"{name} asked with [redacted]" in done.stderr
    assert "4fT9" not in done.stderr
