"""Independent model servers on loopback: ``aimock`` (npm), which answers as told, and ``llmock`` (PyPI), which fails.

Both are used through fixtures, which ``conftest.py`` makes known:

    def test_x(start_aimock): base_url = start_aimock([{"match": {"userMessage": "hi"}, "response": {"content": "ho"}}])
    def test_y(start_llmock): base_url = start_llmock({"type": "fail", "status": 429, "times": 1}, tool_mode="off")

Each server is its own process, and is stopped at the end of the test.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

PEERS = Path(__file__).parents[1] / "peers"
_AIMOCK = PEERS / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
_START_SECONDS = 30

# Serves until its standard input is closed, so that it can never outlive the tests.
_LLMOCK_CODE = """
import json, sys
from llmock.simulation import MockResponseSettings
from llmock.testing import LLMockServer
with LLMockServer(responses=MockResponseSettings(**json.loads(sys.argv[1]))) as server:
    print("listening on", server.url, flush=True)
    sys.stdin.read()
"""

StartAimock = Callable[[Sequence[Mapping[str, Any]]], str]
StartLlmock = Callable[..., str]


def missing_aimock() -> str | None:
    """Why aimock cannot be started, or ``None``. With ``CI=true`` its absence is a failure."""
    if shutil.which("node") is None:
        reason = "there is no node"
    elif not _AIMOCK.exists():
        reason = "tests/peers/node_modules is missing; run npm ci in tests/peers"
    else:
        return None
    if os.environ.get("CI") == "true":
        pytest.fail(f"The tests against aimock cannot run: {reason}.")
    return reason


@contextmanager
def aimock(fixtures: Sequence[Mapping[str, Any]], directory: Path) -> Iterator[str]:
    """An aimock that answers by these fixtures; gives its base URL. ``directory`` is where the fixtures are written."""
    file = directory / "fixtures.json"
    file.write_text(json.dumps({"fixtures": list(fixtures)}))
    with _process(["node", str(_AIMOCK), "--port", "0", "--fixtures", str(file)]) as url:
        yield f"{url}/v1"


@contextmanager
def llmock(*behaviors: Mapping[str, Any], **options: Any) -> Iterator[str]:
    """An llmock that does these things in turn (``{"type": "fail", "status": 429, "times": 1}``); gives its base URL.

    options: fields of its ``MockResponseSettings``, such as ``response_style="hello"`` or ``tool_mode="off"``.
    """
    with _process([sys.executable, "-c", _LLMOCK_CODE, json.dumps(options)]) as url:
        if behaviors:
            call_json(f"{url}/_llmock/scenario", {"behaviors": list(behaviors)})
        yield f"{url}/v1"


def llmock_requests(base_url: str) -> list[dict[str, Any]]:
    """The requests that an llmock has seen, oldest first."""
    said = call_json(f"{base_url.removesuffix('/v1')}/_llmock/requests")
    requests: list[dict[str, Any]] = said["requests"] if isinstance(said, dict) else said
    return requests


def call_json(url: str, body: Any = None) -> Any:
    """GET, or POST with a body, and the JSON that comes back."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as response:
        return json.loads(response.read() or b"null")


@contextmanager
def _process(command: list[str]) -> Iterator[str]:
    """A server process; gives the address that it prints once it listens."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        too_late = threading.Timer(_START_SECONDS, process.kill)
        too_late.start()
        printed: list[str] = []
        try:
            assert process.stdout is not None
            for line in process.stdout:
                printed.append(line)
                if "listening on http" in line:
                    break
            else:
                pytest.fail(f"{command[0]} did not start: {''.join(printed)}")
            too_late.cancel()
            # A full pipe would stop the server: what it prints later is read and dropped.
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield printed[-1].split("listening on ")[1].strip()
        finally:
            too_late.cancel()
            process.terminate()
            process.wait(10)


@pytest.fixture
def start_aimock(tmp_path: Path) -> Iterator[StartAimock]:
    """Start an aimock with fixtures; skips the test, with the reason, where aimock is not installed."""
    reason = missing_aimock()
    if reason:
        pytest.skip(f"aimock is not installed: {reason}")
    with ExitStack() as stack:
        yield lambda fixtures: stack.enter_context(aimock(fixtures, tmp_path))


@pytest.fixture
def start_llmock() -> Iterator[StartLlmock]:
    """Start an llmock with behaviours, as :func:`llmock`."""
    with ExitStack() as stack:
        yield lambda *behaviors, **options: stack.enter_context(llmock(*behaviors, **options))
