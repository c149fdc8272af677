"""The package's loggers, which never let a key through."""

from __future__ import annotations

import logging

from zq_notebook.text.redact import guard_loggers

# What lies below this module logs by the package's own name and cannot ask here.
guard_loggers(("zq_notebook",))


def logger(name: str) -> logging.Logger:
    """The logger of this name; secrets in what it logs are masked, whatever handles its records."""
    guard_loggers((name,))
    return logging.getLogger(name)
