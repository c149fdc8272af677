"""``%agent status``, ``model``, ``mode`` and the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from zq_notebook.errors import UsageError
from zq_notebook.notebook.cell_line import MODES, flags_help, one_of, split_words

if TYPE_CHECKING:
    from zq_notebook.notebook.service import AgentService


class Command(msgspec.Struct, frozen=True):
    """One command: what may follow it, one line of help, and the function that does it and returns what to print."""

    usage: str
    help: str
    run: Callable[[AgentService, list[str]], str]


def run_command(service: AgentService, line: str) -> None:
    """Carry out the line behind ``%agent`` and print its answer. Raises UsageError with what to write instead."""
    words = split_words(line, "%agent")
    name = words[0] if words else "help"
    if name not in COMMANDS and len(words) > 1:
        raise UsageError(
            f"There is no %agent command {name!r}. To give the agent a task, write %%agent on the first line of a cell "
            "and the task below it; %agent help lists the commands."
        )
    one_of("%agent command", name, list(COMMANDS))
    text = COMMANDS[name].run(service, words[1:])
    if text:
        print(text)


def _none(name: str, words: Sequence[str]) -> None:
    if words:
        raise UsageError(f"%agent {name} takes nothing behind it, and got {' '.join(words)!r}.")


def _at_most_one(name: str, words: Sequence[str]) -> str | None:
    if len(words) > 1:
        raise UsageError(f"%agent {name} takes one word, and got {' '.join(words)!r}.")
    return words[0] if words else None


def _status(service: AgentService, words: list[str]) -> str:
    _none("status", words)
    session = service.current
    settings = session.settings
    running = "running" if service.running else "idle"
    cost = f", ${session.cost:.4f}" if session.cost else ""
    rows = [
        ("session", f"{session.name} ({running}, {session.turns} turn{'' if session.turns == 1 else 's'})"),
        ("model", settings.model or "none (set OPENAI_MODEL or %agent model NAME)"),
        ("role", settings.role),
        ("mode", f"{settings.mode} ({service.mode_words(settings.mode)})"),
        ("workspace", str(settings.workspace)),
        ("allowed", ", ".join(service.allowances()) or "nothing without asking"),
        ("used", f"{session.usage.total_tokens:,} tokens{cost}"),
    ]
    return "\n".join(f"{name:<10} {value}" for name, value in rows)


def _model(service: AgentService, words: list[str]) -> str:
    name = _at_most_one("model", words)
    if name is not None:
        service.current.choices.model = name
    return f"model: {name or service.current.settings.model or 'none'}"


def _mode(service: AgentService, words: list[str]) -> str:
    name = _at_most_one("mode", words)
    if name is not None:
        service.set_mode(one_of("mode", name, MODES))
    mode = name or service.current.settings.mode
    return f"mode: {mode} ({service.mode_words(mode)})"


def _role(service: AgentService, words: list[str]) -> str:
    name = _at_most_one("role", words)
    if name is not None:
        service.current.choices.role = one_of("role", name, service.roles.names())
    lines = [f"role: {name or service.current.settings.role}"]
    lines += [f"  {agent.name:<8} {agent.description}" for agent in service.roles.list()]
    return "\n".join(lines)


def _tools(service: AgentService, words: list[str]) -> str:
    _none("tools", words)
    rows = []
    for name, allowed, description in service.tools():
        rows.append(f"{name:<18} {allowed:<14} {description}")
    return "\n".join(rows)


def _new(service: AgentService, words: list[str]) -> str:
    name = _at_most_one("new", words)
    session = service.start_new(name)
    return f"A new conversation begins (session {session.name}). Earlier allowances are forgotten."


def _stop(service: AgentService, words: list[str]) -> str:
    _none("stop", words)
    return "Stopping." if service.stop() else "Nothing is running."


def _allow(service: AgentService, words: list[str]) -> str:
    if not words:
        return "allowed without asking: " + (", ".join(service.allowances()) or "nothing")
    return service.allow(words)


def _disallow(service: AgentService, words: list[str]) -> str:
    if not words:
        raise UsageError("%agent disallow needs what to ask for again: a tool, or run_shell and a command.")
    return service.disallow(words)


def _doctor(service: AgentService, words: list[str]) -> str:
    from zq_notebook.notebook import doctor

    _none("doctor", words)
    return doctor.report(doctor.examine(service.current.settings.model))


def _autoload(service: AgentService, words: list[str]) -> str:
    from zq_notebook.notebook.autoload import set_autoload, startup_file

    wanted = _at_most_one("autoload", words)
    if wanted is not None:
        set_autoload(service.shell, one_of("setting", wanted, ("on", "off")) == "on")
    path = startup_file(service.shell)
    if path.exists():
        return f"autoload: on. New and restarted kernels know %%agent by themselves ({path})."
    return "autoload: off. Each new or restarted kernel needs %load_ext zq_notebook first."


def _help(service: AgentService, words: list[str]) -> str:
    _none("help", words)
    rows = [(f"%agent {name} {command.usage}".rstrip(), command.help) for name, command in COMMANDS.items()]
    width = max(len(left) for left, _ in rows)
    lines = [f"  {left:<{width}}  {right}" for left, right in rows]
    return "\n".join(
        [
            "Write %%agent on the first line of a cell and the task below it. Flags of %%agent:",
            flags_help(),
            "",
            "Commands:",
            *lines,
        ]
    )


COMMANDS: dict[str, Command] = {
    "status": Command("", "what the session is set to, what is allowed, what was used", _status),
    "model": Command("[NAME]", "show or choose the model; 'demo' needs neither key nor network", _model),
    "mode": Command("[MODE]", "show or choose the mode: discuss, plan, interactive, auto", _mode),
    "role": Command("[ROLE]", "show or choose the role: code, cowork, analyst", _role),
    "tools": Command("", "what the agent can do, and what of it is asked for", _tools),
    "new": Command("[SESSION]", "forget the conversation and start a new one", _new),
    "stop": Command("", "stop the running turn", _stop),
    "allow": Command("TOOL | run_shell COMMAND", "allow a tool or commands that begin so, for this session", _allow),
    "disallow": Command("TOOL | run_shell COMMAND", "ask again for what was allowed", _disallow),
    "autoload": Command("[on|off]", "load zq_notebook in every new or restarted kernel by itself", _autoload),
    "doctor": Command("", "check key, model, server, versions, widgets and programs", _doctor),
    "help": Command("", "this list", _help),
}
