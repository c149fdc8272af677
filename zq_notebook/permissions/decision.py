"""May this call run? The eight-step decision (Manual §8.1)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import msgspec

from zq_notebook.errors import UsageError
from zq_notebook.permissions.commands import parse_plain
from zq_notebook.permissions.exemption import Exemptions, judge_by_paths
from zq_notebook.permissions.paths import UnusablePathError, is_inside, is_protected, path_arguments, resolve
from zq_notebook.permissions.risk import RiskClass, approval_waived, category, classify

__all__ = ["Decision", "Mode", "PermissionEngine", "RiskClass", "SandboxState", "ShellPolicy"]

# Arguments of a shell tool that do not change what its command does. Any other one is not covered by an allowlist.
_HARMLESS_SHELL_ARGUMENTS = frozenset({"command", "timeout", "timeout_ms", "background", "cwd", "description"})


class Mode(StrEnum):
    """How much the agent may do by itself (Manual §8.2)."""

    DISCUSS = "discuss"
    PLAN = "plan"
    INTERACTIVE = "interactive"
    AUTO = "auto"

    @classmethod
    def of(cls, value: str) -> Mode:
        """The mode named ``value`` in any case. Raises :class:`UsageError` for an unknown one."""
        try:
            return cls(str(value).strip().lower())
        except ValueError:
            raise UsageError(f"There is no mode {value!r}. Use one of: {', '.join(cls)}.") from None


class ShellPolicy(StrEnum):
    """When a shell command needs no approval (Manual §8.4)."""

    APPROVE = "approve"
    SANDBOX = "sandbox"
    WORKSPACE = "workspace"
    ALL = "all"

    @classmethod
    def of(cls, value: str) -> ShellPolicy:
        """The policy named ``value``. Raises :class:`UsageError` for an unknown one."""
        try:
            return cls(str(value).strip().lower())
        except ValueError:
            raise UsageError(f"There is no shell policy {value!r}. Use one of: {', '.join(cls)}.") from None


class SandboxState(Protocol):
    """What the decision asks of an OS sandbox: is it really in effect?"""

    @property
    def enforced(self) -> bool: ...


class Decision(msgspec.Struct, frozen=True):
    """The answer: run it, refuse it, or ask (``needs_user``). ``reason`` is shown to the user."""

    allowed: bool
    reason: str
    needs_user: bool = False


def _allow(reason: str) -> Decision:
    return Decision(allowed=True, reason=reason)


def _deny(reason: str) -> Decision:
    return Decision(allowed=False, reason=reason)


def _ask(reason: str) -> Decision:
    return Decision(allowed=False, reason=reason, needs_user=True)


class PermissionEngine:
    """Decides about every tool call, in the fixed order of Manual §8.1.

    ``workspace_root`` is the only place that may be written to. ``mode`` may be changed while running and accepts
    strings. ``allowed_commands`` are command prefixes that end at a word boundary. ``sandbox`` is anything with an
    ``enforced`` attribute; ``None`` means that no sandbox is in effect. Raises :class:`UsageError` for an unknown mode
    or shell policy.
    """

    def __init__(
        self,
        workspace_root: str | os.PathLike[str] = ".",
        mode: Mode | str = Mode.INTERACTIVE,
        allowed_commands: Iterable[str] = (),
        shell_policy: ShellPolicy | str = ShellPolicy.APPROVE,
        sandbox: SandboxState | None = None,
    ) -> None:
        self.workspace_root = Path(os.path.realpath(workspace_root))
        self._mode = Mode.of(mode)
        self._shell_policy = ShellPolicy.of(shell_policy)
        self.sandbox = sandbox
        self._exemptions = Exemptions(allowed_commands)
        self.allow_tools: set[str] = set()

    @property
    def mode(self) -> Mode:
        """The current mode; assign a :class:`Mode` or its name."""
        return self._mode

    @mode.setter
    def mode(self, value: Mode | str) -> None:
        self._mode = Mode.of(value)

    @property
    def shell_policy(self) -> ShellPolicy:
        """When shell commands need no approval; assign a :class:`ShellPolicy` or its name."""
        return self._shell_policy

    @shell_policy.setter
    def shell_policy(self, value: ShellPolicy | str) -> None:
        self._shell_policy = ShellPolicy.of(value)

    @property
    def allowed_commands(self) -> tuple[str, ...]:
        """The configured command prefixes."""
        return self._exemptions.configured

    @property
    def allow_commands(self) -> set[str]:
        """The programs that the user allowed for this session."""
        return self._exemptions.programs

    def allow_tool_for_session(self, tool_name: str) -> None:
        """Allow ``tool_name`` until the session ends. Paths are still checked."""
        self.allow_tools.add(tool_name)

    def allow_command_for_session(self, command: str) -> None:
        """Allow the program of ``command`` until the session ends.

        Only a simple command is remembered, and only a program that does not run whatever it is given (``env``,
        ``xargs``, ``bash`` …); otherwise nothing changes (Manual §8.5).
        """
        if self._exemptions.can_remember(command):
            self._exemptions.programs.add(parse_plain(command).program)

    def allow_prefix_for_session(self, prefix: str) -> bool:
        """Allow commands that begin with ``prefix`` until the session ends, as ``allowed_commands`` does.

        False, and nothing changes, for what is no plain command or would run whatever it is given.
        """
        return self._exemptions.add_prefix(prefix)

    def disallow_for_session(self, name: str) -> bool:
        """Take back an allowance for a tool, a program or a command prefix; false when there is none such."""
        known = name in self.allow_tools
        self.allow_tools.discard(name)
        return self._exemptions.remove(name) or known

    def can_always_allow_command(self, tool_name: str, arguments: Mapping[str, object]) -> bool:
        """Whether "always allow this command" would have an effect for this call; only ``run_shell`` has it."""
        command = arguments.get("command") if tool_name == "run_shell" else None
        return isinstance(command, str) and self._exemptions.can_remember(command)

    def evaluate(self, tool_name: str, arguments: Mapping[str, object], metadata: object = None) -> Decision:
        """Decide about one call; ``arguments`` are those that the tool will really get (Manual §8.1)."""
        risk = classify(metadata)
        if risk is not RiskClass.READ and self._mode in (Mode.DISCUSS, Mode.PLAN):
            return _deny(
                f"{tool_name} was not run: {self._mode} mode only looks, it neither changes nor runs anything. "
                "Switch to interactive mode to allow it."
            )
        protected = False
        if risk is RiskClass.WRITE:
            refusal, protected = self._check_paths(tool_name, arguments)
            if refusal is not None:
                return refusal
        if risk is RiskClass.READ:
            return _allow(f"{tool_name} only reads.")
        if protected:
            return _ask(
                f"{tool_name} wants to change the agent's own settings or git's internal files, which decide what may "
                "run later. That is always asked."
            )
        if self._mode is Mode.AUTO:
            return _allow("Auto mode runs it without asking.")
        is_command = category(metadata) == "shell" and isinstance(arguments.get("command"), str)
        if is_command:
            return self._evaluate_command(tool_name, arguments, waived=approval_waived(metadata))
        if tool_name in self.allow_tools:
            return _allow(f"You allowed {tool_name} for this session.")
        if approval_waived(metadata):
            return _allow(f"{tool_name} is declared to need no approval.")
        return _ask(_why_ask(tool_name, risk))

    def _check_paths(self, tool_name: str, arguments: Mapping[str, object]) -> tuple[Decision | None, bool]:
        """A refusal for a path outside the workspace, and whether one inside is protected."""
        protected = False
        for text in path_arguments(arguments):
            try:
                path = resolve(text, self.workspace_root)
            except UnusablePathError as error:
                return _deny(f"{tool_name} was refused: {error}"), False
            if not is_inside(path, self.workspace_root):
                return _deny(
                    f"{tool_name} was refused: {text} leads to {path}, outside the workspace {self.workspace_root}. "
                    "Files outside it are never written, in any mode."
                ), False
            protected = protected or is_protected(path, self.workspace_root)
        return None, protected

    def _evaluate_command(self, tool_name: str, arguments: Mapping[str, object], *, waived: bool) -> Decision:
        """Steps 5 to 8 for a shell command."""
        command = str(arguments["command"])
        exempt = self._exempt_by_policy(command, arguments)
        if exempt is not None:
            return exempt
        why_not = ""
        unknown = sorted(set(arguments) - _HARMLESS_SHELL_ARGUMENTS)
        if unknown:
            why_not = f" (the argument {unknown[0]} is not covered by the allowlist)"
        else:
            cwd = self._working_directory(arguments)
            verdict = "the working directory lies outside the workspace" if cwd is None else None
            if cwd is not None:
                allowed, verdict = self._exemptions.judge(command, cwd, self.workspace_root)
                if allowed is not None:
                    return _allow(allowed)
            why_not = f" ({verdict})" if verdict else ""
        if tool_name in self.allow_tools:
            return _allow(f"You allowed {tool_name} for this session.")
        if waived:
            return _allow(f"{tool_name} is declared to need no approval.")
        return _ask(f"{tool_name} runs a command on this machine{why_not}.")

    def _working_directory(self, arguments: Mapping[str, object]) -> Path | None:
        """Where the command would run, or ``None`` when that is outside the workspace."""
        try:
            cwd = resolve(str(arguments.get("cwd") or "."), self.workspace_root)
        except UnusablePathError:
            return None
        return cwd if is_inside(cwd, self.workspace_root) else None

    def _exempt_by_policy(self, command: str, arguments: Mapping[str, object]) -> Decision | None:
        """Step 5: the shell policy, together with the sandbox."""
        policy = self._shell_policy
        if policy is ShellPolicy.ALL:
            return _allow("The shell policy 'all' allows every command.")
        if policy is ShellPolicy.APPROVE:
            return None
        if self.sandbox is not None and self.sandbox.enforced is True:
            return _allow("The command runs in the OS sandbox.")
        if policy is ShellPolicy.WORKSPACE:
            cwd = self._working_directory(arguments)
            if cwd is not None and judge_by_paths(command, cwd, self.workspace_root):
                return _allow("The command is simple and names only places inside the workspace.")
        return None


def _why_ask(tool_name: str, risk: RiskClass) -> str:
    if risk is RiskClass.WRITE:
        return f"{tool_name} changes files in the workspace."
    if risk is RiskClass.EXECUTE:
        return f"{tool_name} runs a program on this machine."
    return f"{tool_name} acts outside of what only reads."
