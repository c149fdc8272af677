"""What holds for every test: no model, key or setting of the person who runs them, and repeatable property tests."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("zq", deadline=None, derandomize=os.environ.get("CI") == "true")


def pytest_configure() -> None:
    settings.load_profile("zq")
    # Here and not in a fixture, as servers and kernels of session-wide fixtures inherit the environment too.
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "ZQ_")):
            del os.environ[name]
