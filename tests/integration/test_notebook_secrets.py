"""A server that repeats the key wherever it can: nothing of it reaches a cell, a log, a file or the model."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.integration.kernel import Kernel, Reply, running_kernel

KEY = "sk-proj-ABCDEF0123456789abcdefXYZ987654"
PASSWORD = "hunter2-Pa55w0rd-xyz"


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}


def _call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"index": number, "id": f"call-{number}", "type": "function", "function": function}


class _Echo(http.server.BaseHTTPRequestHandler):
    """Answers as ``behaviour`` says; every answer holds the key that came with the request."""

    protocol_version = "HTTP/1.1"
    behaviour = ""
    bodies: ClassVar[list[dict[str, Any]]] = []

    def log_message(self, *args: object) -> None:
        """Say nothing on the test's own stderr."""

    def do_GET(self) -> None:
        self._send(401, "application/json", b"{}")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers["Authorization"].split()[-1]
        if self.path.endswith("/responses"):
            self._send(404, "application/json", json.dumps({"error": {"message": f"not here, {key}"}}).encode())
            return
        type(self).bodies.append(body)
        answer = getattr(self, f"_{self.behaviour}")(key)
        if isinstance(answer, list):
            text = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in answer)
            self._send(200, "text/event-stream", text + b"data: [DONE]\n\n")

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-You-Sent", self.headers.get("Authorization", ""))
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, key: str) -> None:
        self._send(401, "application/json", json.dumps({"error": {"message": f"wrong key {key} {key[:20]}"}}).encode())

    def _fail(self, key: str) -> None:
        self._send(500, "text/html", f"<h1>{key}</h1>".encode())

    def _garble(self, key: str) -> None:
        self._send(200, "text/event-stream", f'data: {{"choices": [ {key}\n\n'.encode())

    def _break_off(self, key: str) -> None:
        self._send(200, "text/event-stream", f'data: {{"error": {{"message": "broken for {key}"}}}}\n\n'.encode())

    def _say(self, key: str) -> list[dict[str, Any]]:
        pieces = [_chunk({"content": piece}) for piece in ("Yours is ", *key, ", is it not?")]
        thoughts = [_chunk({"reasoning_content": key[at : at + 3]}) for at in range(0, len(key), 3)]
        return [*thoughts, *pieces, _chunk({}, "stop")]

    def _call_tools(self, key: str) -> list[dict[str, Any]]:
        type(self).behaviour = "say_done"
        rich = "from IPython.display import HTML, display\ndisplay(HTML('<script>' + k + '</script>'))"
        return [
            _chunk(
                {
                    "tool_calls": [
                        _call(0, "run_code", code="import os\nprint(dict(os.environ))\nos.environ['OPENAI_API_KEY']"),
                        _call(1, "run_code", code="raise ValueError(os.environ['OPENAI_API_KEY'])"),
                        _call(2, "run_code", code=rich),
                        _call(3, "run_shell", command="env"),
                        _call(4, "read_file", path="key.txt"),
                        _call(5, "grep", pattern="sk-"),
                        _call(6, "list_variables"),
                        _call(7, "inspect_variable", name="k"),
                        _call(8, "ask_user", question=f"Is {key} yours?"),
                    ]
                }
            ),
            _chunk({}, "tool_calls"),
        ]

    def _say_done(self, key: str) -> list[dict[str, Any]]:
        return [_chunk({"content": "done"}), _chunk({}, "stop")]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}/v1"
        listening.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secrets")
    (folder / "key.txt").write_text(f"key = {KEY}\n")
    return folder


@pytest.fixture(scope="module")
def kernel(server: str, folder: Path) -> Iterator[Kernel]:
    env = {"OPENAI_API_KEY": KEY, "DB_PASSWORD": PASSWORD, "OPENAI_BASE_URL": server}
    env |= {"NETWORK_RETRY_BASE_MS": "5", "OPENAI_MAX_RETRIES": "0"}
    with running_kernel(env=env, cwd=str(folder)) as kernel:
        kernel.execute("%load_ext zq_notebook\n%agent model gpt-5\n%agent mode auto", check=True)
        kernel.execute(f"%config AgentMagics.log_dir = '{folder}/logs'", check=True)
        kernel.execute("import os, logging\nk = os.environ['OPENAI_API_KEY']", check=True)
        kernel.execute("logging.basicConfig(level=logging.DEBUG, force=True)", check=True)
        yield kernel


def assert_clean(reply: Reply) -> None:
    said = json.dumps(reply.messages, default=str, ensure_ascii=False)
    for secret in (KEY, KEY[:20], PASSWORD):
        at = said.find(secret)
        assert at < 0, said[max(0, at - 300) : at + 60]


@pytest.mark.parametrize("behaviour", ["say", "refuse", "fail", "garble", "break_off", "call_tools"])
def test_a_key_that_the_server_repeats_is_shown_and_logged_nowhere(
    kernel: Kernel, folder: Path, behaviour: str
) -> None:
    _Echo.behaviour = behaviour
    _Echo.bodies.clear()
    reply = kernel.execute("%%agent --new -o r\nhi")
    assert reply.stderr  # the log of the HTTP client
    assert_clean(reply)
    assert_clean(kernel.execute("print(r, repr(r), r.error)"))
    for body in _Echo.bodies:
        results = [m for m in body["messages"] if m["role"] in ("tool", "user", "system")]
        assert KEY not in json.dumps(results)
        assert PASSWORD not in json.dumps(results)
    logs = [path for path in (folder / "logs").rglob("*") if path.is_file()]
    assert logs
    for path in logs:
        assert KEY not in path.read_text()


@pytest.mark.parametrize(
    "cell",
    [
        "%agent status",
        "%agent doctor",
        "%config AgentMagics",
        "magics = get_ipython().magics_manager.registry['AgentMagics']\nmagics, magics.service, magics.service.current",
        "vars(magics.service.current), magics.service.current.settings",
        "engine = magics.service.current.engine\nengine, vars(engine), engine.provider, vars(engine.provider)",
        "engine.provider.settings()",
        "%tb",
    ],
)
def test_no_object_and_no_command_shows_the_key(kernel: Kernel, cell: str) -> None:
    _Echo.behaviour = "refuse"
    kernel.execute("%%agent\nhi")
    assert_clean(kernel.execute(cell))
