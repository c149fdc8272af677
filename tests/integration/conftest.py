"""Fixtures that several integration tests share."""

from __future__ import annotations

from tests.integration.peers import start_aimock, start_llmock
from tests.integration.raw_server import raw_server

__all__ = ["raw_server", "start_aimock", "start_llmock"]
