"""``%agent doctor``: what is there, what is missing, and how to mend it."""

from __future__ import annotations

import http.client
import importlib.metadata
import os
import shutil
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import msgspec

from zq_notebook.assembly import registration
from zq_notebook.errors import UsageError
from zq_notebook.providers.settings import DEFAULT_BASE_URL, is_private_host, read_settings
from zq_notebook.text.redact import shared
from zq_notebook.text.truncate import shorten

CONNECT_SECONDS = 3.0

# Local model servers on the ports they use unless told otherwise.
LOCAL_SERVERS = (
    ("Ollama", 11434),
    ("LM Studio", 1234),
    ("llama.cpp", 8080),
    ("vLLM", 8000),
)


class Finding(msgspec.Struct, frozen=True):
    """One line of the report. ``good`` is ``None`` for a mere fact; ``remedy`` says how to mend what is not good."""

    name: str
    good: bool | None
    detail: str
    remedy: str = ""


def examine(model: str) -> list[Finding]:
    """Every finding, in the order in which a newcomer would look. Takes a few seconds at most."""
    checks: list[Callable[[], list[Finding]]] = [
        lambda: [_model(model)],
        lambda: [_key(model)],
        lambda: [_server(model)],
        _local_servers,
        lambda: [_version("ipykernel", (7, 4), "pip install -U 'ipykernel>=7.4', then restart the kernel.")],
        lambda: [_version("jupyterlab", (4, 6), "pip install -U 'jupyterlab>=4.6'", required=False)],
        lambda: [_widgets()],
        lambda: [_program("git", "file snapshots and git tools need it", "Install git.")],
        lambda: [_program("rg", "searching works without it, only slower", "Install ripgrep.", name="ripgrep")],
        lambda: [_sandbox()],
    ]
    with ThreadPoolExecutor(len(checks)) as pool:
        return [finding for findings in pool.map(_carefully, checks) for finding in findings]


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), 200)


def _carefully(check: Callable[[], list[Finding]]) -> list[Finding]:
    """What a check finds; one that fails itself must not keep the others from being shown."""
    try:
        return check()
    except Exception as error:
        return [Finding("a check", False, _short(shared().redact(f"{type(error).__name__}: {error}")))]


def report(findings: list[Finding]) -> str:
    """The findings as aligned text."""
    return "\n".join(_lines(findings))


def _lines(findings: list[Finding]) -> Iterator[str]:
    width = max(len(f.name) for f in findings)
    for finding in findings:
        mark = {True: "ok     ", False: "missing", None: "-      "}[finding.good]
        yield f"{mark}  {finding.name:<{width}}  {finding.detail}"
        if finding.remedy:
            yield f"{'':9}{'':<{width}}  {finding.remedy}"


def _model(model: str) -> Finding:
    if model:
        return Finding("model", True, model)
    return Finding("model", False, "none chosen", "Set OPENAI_MODEL or run %agent model NAME; 'demo' needs no key.")


def _needs_no_server(model: str) -> str:
    """Why a model needs neither key nor server of OpenAI's kind; empty when it does."""
    if registration(model) is not None:
        return "not needed: the model has a provider of its own"
    return "not needed for the scripted demo" if model == "demo" else ""


def _key(model: str) -> Finding:
    if os.environ.get("OPENAI_API_KEY"):
        return Finding("API key", True, "OPENAI_API_KEY is set")
    if _needs_no_server(model):
        return Finding("API key", None, _needs_no_server(model))
    if _is_local(_base_url()):
        return Finding("API key", None, "not set; a server on this machine usually needs none")
    return Finding(
        "API key",
        False,
        "OPENAI_API_KEY is not set",
        "Set it before the kernel starts, or in a cell: import os, getpass; "
        "os.environ['OPENAI_API_KEY'] = getpass.getpass()",
    )


def _base_url() -> str:
    return os.environ.get("OPENAI_BASE_URL", "").strip() or DEFAULT_BASE_URL


def _is_local(url: str) -> bool:
    try:
        return is_private_host(urlsplit(url).hostname or "")
    except ValueError:
        return False


def _server(model: str) -> Finding:
    if _needs_no_server(model):
        return Finding("model server", None, _needs_no_server(model))
    try:
        settings = read_settings()
    except UsageError as error:
        return Finding("model server", False, "the settings cannot be used", str(error))
    parts = urlsplit(settings.base_url)
    shown = f"{parts.scheme}://{settings.host}"
    request = urllib.request.Request(f"{shown}{parts.path.rstrip('/')}/models", method="GET")
    try:
        with urllib.request.urlopen(request, timeout=CONNECT_SECONDS):
            pass
    except urllib.error.HTTPError as error:
        # Any answer proves that the server is there; this request carries no key on purpose.
        return Finding("model server", True, f"{shown} answers (status {error.code} without a key)")
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = _short(shared().redact(str(getattr(error, "reason", error))))
        remedy = "Check OPENAI_BASE_URL, the network and HTTPS_PROXY, or start the local server."
        return Finding("model server", False, f"{shown} cannot be reached ({reason})", remedy)
    return Finding("model server", True, f"{shown} answers")


def _local_servers() -> list[Finding]:
    found = [(name, port) for name, port in LOCAL_SERVERS if _listens(port)]
    if not found:
        names = ", ".join(f"{name} {port}" for name, port in LOCAL_SERVERS)
        return [Finding("local servers", None, f"none on their usual ports ({names})")]
    return [
        Finding(
            "local server",
            True,
            f"something listens on port {port}, usually {name}: OPENAI_BASE_URL=http://127.0.0.1:{port}/v1",
        )
        for name, port in found
    ]


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=0.3):
            return True
    except OSError:
        return False


def _version(package: str, least: tuple[int, int], remedy: str, *, required: bool = True) -> Finding:
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return Finding(package, False if required else None, "not installed in this environment", remedy)
    have = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if have < least:
        wanted = ".".join(map(str, least))
        return Finding(package, False, f"{version}, and {wanted} is needed", remedy)
    return Finding(package, True, version)


def _widgets() -> Finding:
    try:
        version = importlib.metadata.version("anywidget")
        importlib.metadata.version("ipywidgets")
    except importlib.metadata.PackageNotFoundError as error:
        remedy = "pip install anywidget, then restart the kernel and reload the page. Until then answers are plain."
        return Finding("widgets", False, f"{error.name} is not installed", remedy)
    return Finding("widgets", True, f"anywidget {version}")


def _program(program: str, purpose: str, remedy: str, name: str = "") -> Finding:
    path = shutil.which(program)
    if path is None:
        return Finding(name or program, None, f"not found; {purpose}", remedy)
    return Finding(name or program, True, path)


def _sandbox() -> Finding:
    bwrap = "bwrap is there" if shutil.which("bwrap") else "bwrap is not there"
    return Finding("sandbox", None, f"this version confines no commands, it asks for them ({bwrap})")
