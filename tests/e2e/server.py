"""A real Jupyter server on loopback for browser tests, with folders of its own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

START_TIMEOUT = 60.0  # seconds

# What JupyterLab would otherwise ask or do by itself, on top of its defaults.
LAB_SETTINGS: dict[str, dict[str, Any]] = {
    "@jupyterlab/apputils-extension/notification": {"checkForUpdates": False, "fetchNews": "false"},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
}


class JupyterServer:
    """``jupyter server`` with JupyterLab and Notebook 7 on one free port, no token, rooted at ``home/root``.

    It reads no configuration of the person who runs the tests and hands no ``OPENAI_*`` or ``ZQ_*`` variable to its
    kernels, except those given in ``env``.
    """

    def __init__(self, home: Path, env: dict[str, str] | None = None) -> None:
        self.home = home
        self.root = home / "root"
        self.root.mkdir(parents=True)
        self.log = home / "server.log"
        self._env = self._environment(env or {})
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Base URL, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Start the server and return when it answers; its log is in the message when it does not."""
        self._write_settings()
        for _ in range(3):  # a port that was free a moment ago may be taken by now
            self.port = _free_port()
            if self._launch():
                return self
            self.stop()
        raise RuntimeError(f"The Jupyter server did not start. Its log:\n{self.log.read_text()}")

    def stop(self) -> None:
        """End the server and with it its kernels."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout=5)
        self._process = None

    def api(self, path: str, method: str = "GET", body: object = None) -> Any:
        """One call of the REST API (``path`` without ``/api/``); the decoded JSON answer, None for an empty one."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}/api/{path}", data=data, method=method, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            text = response.read()
        return json.loads(text) if text else None

    def session_of(self, path: str) -> dict[str, Any] | None:
        """The server's session for the notebook at ``path``, None when it has no kernel."""
        sessions: list[dict[str, Any]] = self.api("sessions")
        return next((session for session in sessions if session["path"] == path), None)

    def shut_down_kernels(self) -> None:
        """End every kernel, so that one test's kernel costs the next one nothing."""
        for session in self.api("sessions"):
            self.api(f"sessions/{session['id']}", "DELETE")

    def _launch(self) -> bool:
        options = [
            "--allow-root",
            "--no-browser",
            f"--ServerApp.root_dir={self.root}",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={self.port}",
            "--ServerApp.port_retries=0",
            "--IdentityProvider.token=",
            "--ServerApp.disable_check_xsrf=True",
            "--FileContentsManager.delete_to_trash=False",
            "--LabApp.expose_app_in_browser=True",
            "--JupyterNotebookApp.expose_app_in_browser=True",
            "--LabApp.news_url=",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jupyter_server", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._env,
            cwd=self.root,
        )
        told = threading.Event()  # set when the server says that it is up, or when it ended
        ready = threading.Event()
        stream = self._process.stdout
        assert stream is not None

        def read() -> None:
            with stream, self.log.open("a") as log:
                for line in stream:
                    log.write(line)
                    log.flush()
                    if "is running at" in line:
                        ready.set()
                        told.set()
            told.set()

        self._reader = threading.Thread(target=read, name="jupyter-server-log", daemon=True)
        self._reader.start()
        told.wait(START_TIMEOUT)
        return ready.is_set() and self._answers()

    def _answers(self) -> bool:
        # The server announces itself a moment before it listens.
        pause = threading.Event()
        for _ in range(100):
            try:
                self.api("status")
            except urllib.error.URLError:
                pause.wait(0.05)
            else:
                return True
        return False

    def _write_settings(self) -> None:
        for plugin, values in LAB_SETTINGS.items():
            file = self.home / "config" / "lab" / "user-settings" / f"{plugin}.jupyterlab-settings"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(values))

    def _environment(self, extra: dict[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "ZQ_", "JUPYTER"))}
        own = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "IPYTHONDIR": "ipython",
        }
        return kept | {name: str(self.home / folder) for name, folder in own.items()} | extra


def find_chromium() -> str | None:
    """Path of a Chromium on this machine, None when there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        path = shutil.which(name)
        if path:
            return path
    return None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
