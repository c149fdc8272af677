"""What a command that the agent runs finds around it: the shell, and an environment without secrets or surprises."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence

from zq_notebook.text.redact import is_secret_name, shared

# Variables through which a shell runs something of its own, or that make an allowed name mean something else.
_STEERING = re.compile(
    r"BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|PROMPT_COMMAND|PS4|CDPATH|GLOBIGNORE|POSIXLY_CORRECT"
)
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PYTHONUNBUFFERED": "1",
    "PIP_NO_INPUT": "1",
    "DEBIAN_FRONTEND": "noninteractive",
}


def scrubbed_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for commands: without secrets, by name and by value, and without pagers, prompts and editors.

    A value counts as a secret when it is, or contains, one that was registered or looks like a key.
    """
    source = dict(os.environ if environ is None else environ)
    redact = shared().redact
    kept: dict[str, str] = {}
    for name, value in source.items():
        # The server's address and the like are the agent's own business, and may hold a password.
        if is_secret_name(name) or name.upper().startswith("OPENAI_") or _STEERING.fullmatch(name):
            continue
        if name == "MPLBACKEND" and value.startswith("module://"):
            continue  # the notebook's own backend, which other interpreters may not have
        if len(value) >= 8 and redact(value) != value:
            continue
        kept[name] = value
    kept["PATH"] = os.pathsep.join(
        item for item in source.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(item)
    )
    return kept | _QUIET


def shell_command(command: str, platform: str = sys.platform) -> Sequence[str]:
    """The argument list that has ``command`` run by the shell of this machine, without anyone's start-up files."""
    if platform == "win32":
        shell = shutil.which("pwsh") or shutil.which("powershell")
        if shell:
            return [shell, "-NoLogo", "-NoProfile", "-NonInteractive", "-Command", command]
        return [os.environ.get("COMSPEC", "cmd.exe"), "/d", "/s", "/c", command]
    for bash in ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash"):
        if os.access(bash, os.X_OK):
            return [bash, "--noprofile", "--norc", "-c", command]
    return ["/bin/sh", "-c", command]
