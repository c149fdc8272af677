"""The eight steps, in their order (Manual §8.1 to §8.5)."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from zq_notebook.errors import UsageError
from zq_notebook.permissions.decision import Decision, Mode, PermissionEngine, RiskClass, ShellPolicy
from zq_notebook.permissions.risk import classify

READ = {"category": "file", "riskLevel": "low", "capabilities": ["read"], "requiresApproval": False}
WRITE = {"category": "file", "riskLevel": "medium", "capabilities": ["write"], "requiresApproval": True}
SHELL = {"category": "shell", "riskLevel": "high", "capabilities": ["execute"], "requiresApproval": True}
OTHER = {"category": "business", "riskLevel": "high", "capabilities": ["query_order"], "requiresApproval": True}
WAIVED = {**OTHER, "requiresApproval": False}


def kind(decision: Decision) -> str:
    assert decision.reason
    return "ask" if decision.needs_user else "allow" if decision.allowed else "deny"


@pytest.mark.parametrize(
    ("mode", "metadata", "expected"),
    [
        ("discuss", READ, "allow"),
        ("discuss", WRITE, "deny"),
        ("discuss", SHELL, "deny"),
        ("discuss", OTHER, "deny"),
        ("discuss", WAIVED, "deny"),
        ("discuss", None, "deny"),
        ("plan", READ, "allow"),
        ("plan", WRITE, "deny"),
        ("plan", SHELL, "deny"),
        ("interactive", READ, "allow"),
        ("interactive", WRITE, "ask"),
        ("interactive", SHELL, "ask"),
        ("interactive", OTHER, "ask"),
        ("interactive", WAIVED, "allow"),
        ("interactive", None, "ask"),
        ("interactive", {}, "ask"),
        ("auto", READ, "allow"),
        ("auto", WRITE, "allow"),
        ("auto", SHELL, "allow"),
        ("auto", OTHER, "allow"),
        ("auto", None, "allow"),
    ],
)
def test_mode_and_risk(tmp_path: Path, mode: str, metadata: object, expected: str) -> None:
    engine = PermissionEngine(workspace_root=tmp_path, mode=mode)
    assert kind(engine.evaluate("t", {"path": "x", "command": "ls"}, metadata)) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        (READ, RiskClass.READ),
        (WRITE, RiskClass.WRITE),
        (SHELL, RiskClass.EXECUTE),
        (OTHER, RiskClass.EXTERNAL),
        (None, RiskClass.EXTERNAL),
        ({}, RiskClass.EXTERNAL),
        ({"category": "x", "risk_level": "low"}, RiskClass.EXTERNAL),
        ({"category": "x", "risk_level": "low", "requires_approval": False}, RiskClass.READ),
        ({"category": "x", "risk_level": "low", "requires_approval": True}, RiskClass.EXTERNAL),
        ({"category": "x", "capabilities": ["file_write"]}, RiskClass.WRITE),
        ({"category": "x", "capabilities": "write"}, RiskClass.WRITE),
        ({"category": "patch"}, RiskClass.WRITE),
        ({"category": "x", "riskClass": "read", "riskLevel": "high"}, RiskClass.READ),
        ({"category": "x", "risk_class": RiskClass.WRITE}, RiskClass.WRITE),
        (
            {"category": "x", "risk_class": "nonsense", "riskLevel": "low", "requiresApproval": False},
            RiskClass.EXTERNAL,
        ),
        (SimpleNamespace(category="shell", risk_level="high", requires_approval=True), RiskClass.EXECUTE),
    ],
)
def test_risk_class(metadata: object, expected: RiskClass) -> None:
    assert classify(metadata) is expected


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "dangling").symlink_to(tmp_path / "outside" / "not-yet")
    (root / "relative").symlink_to("../outside/x")
    (root / "inner").symlink_to("sub")
    (root / "chain").symlink_to("out")
    (root / "loop").symlink_to("loop")
    return root


@pytest.mark.parametrize("mode", ["interactive", "auto"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "../x"},
        {"path": "/etc/passwd"},
        {"path": "sub/../../x"},
        {"path": "out/x"},
        {"path": "dangling"},
        {"path": "relative"},
        {"path": "chain/deep/x"},
        {"path": "inner/../../x"},
        {"path": "~/x"},
        {"path": "~root/x"},
        {"path": "file:///etc/passwd"},
        {"path": "a\0b"},
        {"file": "/etc/x"},
        {"target": "/etc/x"},
        {"file_path": "/etc/x"},
        {"filePath": "/etc/x"},
        {"target-dir": "/etc"},
        {"paths": ["a", "/etc/x"]},
        {"files": {"/etc/x": "content"}},
        {"edits": [{"path": "a"}, {"path": "../x"}]},
        {"path": ["ok", ["../x"]]},
        {"destination": "../x", "path": "ok"},
        {"options": {"output_dir": "/tmp"}},
        {"path": Path("/etc/x")},
    ],
)
def test_write_outside_the_workspace_is_denied_in_every_mode(workspace: Path, mode: str, arguments: dict) -> None:
    engine = PermissionEngine(workspace, mode=mode, shell_policy="all")
    engine.allow_tool_for_session("write_file")
    assert kind(engine.evaluate("write_file", arguments, WRITE)) == "deny"


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "x"},
        {"path": "sub/new/x"},
        {"path": "inner/x"},
        {"path": "./sub/../x"},
        {"path": "..x"},
        {"path": "x", "content": "/etc/passwd ../.."},
        {"path": "emoji 🎉.txt"},
        {"path": "x", "file_type": "csv"},
        {},
    ],
)
def test_write_inside_the_workspace_is_allowed_in_auto(workspace: Path, arguments: dict) -> None:
    engine = PermissionEngine(workspace, mode=Mode.AUTO)
    assert kind(engine.evaluate("write_file", arguments, WRITE)) == "allow"
    absolute = {key: str(workspace / value) for key, value in arguments.items() if key == "path"}
    assert kind(engine.evaluate("write_file", absolute, WRITE)) == "allow"


def test_waived_tool_that_writes_still_stays_inside(workspace: Path) -> None:
    engine = PermissionEngine(workspace)
    metadata = {**WRITE, "requiresApproval": False}
    assert kind(engine.evaluate("save", {"path": "x"}, metadata)) == "allow"
    assert kind(engine.evaluate("save", {"path": "../x"}, metadata)) == "deny"


def test_workspace_that_is_a_link_is_resolved_once(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    engine = PermissionEngine(tmp_path / "link", mode="auto")
    assert engine.workspace_root == real
    assert kind(engine.evaluate("write_file", {"path": str(tmp_path / "link" / "x")}, WRITE)) == "allow"


@pytest.mark.parametrize(
    "path",
    [
        ".agent/settings.json",
        ".agent/rules.json",
        ".agent/mcp.json",
        ".agent/agents/x.md",
        ".AGENT/settings.json",
        "x/../.agent/new",
        ".git/config",
        ".git/hooks/post-index-change",
        "sub/.git/config",
        "state-link/settings.json",
    ],
)
def test_own_settings_and_git_internals_are_always_asked_about(workspace: Path, path: str) -> None:
    (workspace / ".agent").mkdir()
    (workspace / "state-link").symlink_to(".agent")
    for mode, expected in (("auto", "ask"), ("interactive", "ask"), ("plan", "deny")):
        engine = PermissionEngine(workspace, mode=mode)
        engine.allow_tool_for_session("write_file")
        assert kind(engine.evaluate("write_file", {"path": path}, WRITE)) == expected
        waived = {**WRITE, "requiresApproval": False}
        assert kind(engine.evaluate("write_file", {"path": path}, waived)) == expected


def test_modes_accept_names_and_refuse_unknown_ones(tmp_path: Path) -> None:
    engine = PermissionEngine(tmp_path, mode="AUTO")
    assert engine.mode is Mode.AUTO
    engine.mode = "plan"
    assert engine.mode is Mode.PLAN
    with pytest.raises(UsageError, match="discuss, plan, interactive, auto"):
        engine.mode = "yolo"
    assert engine.mode is Mode.PLAN
    with pytest.raises(UsageError, match="workspace"):
        PermissionEngine(tmp_path, shell_policy="never")


def test_tool_allowed_for_the_session(tmp_path: Path) -> None:
    engine = PermissionEngine(tmp_path)
    engine.allow_tool_for_session("query")
    assert kind(engine.evaluate("query", {}, OTHER)) == "allow"
    assert kind(engine.evaluate("query2", {}, OTHER)) == "ask"
    assert engine.allow_tools == {"query"}
    engine.mode = "plan"
    assert kind(engine.evaluate("query", {}, OTHER)) == "deny"


@pytest.mark.parametrize(
    ("remembered", "then", "expected"),
    [
        ("npm test", "npm run build", "allow"),
        ("git log", "git push", "allow"),
        ("git log", "git -c alias.x=!y x", "ask"),
        ("ls -la", "ls src", "allow"),
        ("ls -la", "lsof", "ask"),
        ("ls -la", "ls; rm x", "ask"),
        ("ls; rm x", "ls", "ask"),
        ("ls | wc", "ls", "ask"),
        ("env x", "env y", "ask"),
        ("bash x.sh", "bash x.sh", "ask"),
        ("find . -delete", "find .", "ask"),
        ("git", "git status", "allow"),
    ],
)
def test_command_allowed_for_the_session(tmp_path: Path, remembered: str, then: str, expected: str) -> None:
    engine = PermissionEngine(tmp_path)
    engine.allow_command_for_session(remembered)
    assert kind(engine.evaluate("run_shell", {"command": then}, SHELL)) == expected
    applies = engine.can_always_allow_command("run_shell", {"command": remembered})
    assert applies is bool(engine.allow_commands)


def test_always_allow_command_needs_a_command(tmp_path: Path) -> None:
    engine = PermissionEngine(tmp_path)
    assert engine.can_always_allow_command("run_shell", {"command": "npm test"})
    assert not engine.can_always_allow_command("run_code", {"code": "1"})
    assert not engine.can_always_allow_command("run_shell", {"command": None})
    assert not engine.can_always_allow_command("mcp__x__y", {"command": "npm test"})


@pytest.mark.parametrize(
    ("policy", "enforced", "command", "expected"),
    [
        ("approve", True, "make", "ask"),
        ("all", False, "rm -rf x; y", "allow"),
        ("sandbox", True, "make; x", "allow"),
        ("sandbox", False, "make", "ask"),
        ("sandbox", None, "make", "ask"),
        ("workspace", True, "make; x", "allow"),
        ("workspace", None, "make test", "allow"),
        ("workspace", None, "cp a sub/b", "allow"),
        ("workspace", None, "cp a ../b", "ask"),
        ("workspace", None, "cp a /tmp/b", "ask"),
        ("workspace", None, "cp a ~/b", "ask"),
        ("workspace", None, "cp a --target-directory=/tmp", "ask"),
        ("workspace", None, "cp a -t/tmp", "ask"),
        ("workspace", None, "cp a out/b", "ask"),
        ("workspace", None, "make; x", "ask"),
        ("workspace", None, "bash x.sh", "ask"),
        ("workspace", None, "find . -delete", "ask"),
    ],
)
def test_shell_policy(workspace: Path, policy: str, enforced: bool | None, command: str, expected: str) -> None:
    sandbox = None if enforced is None else SimpleNamespace(enforced=enforced)
    engine = PermissionEngine(workspace, shell_policy=policy, sandbox=sandbox)
    assert engine.shell_policy is ShellPolicy(policy)
    assert kind(engine.evaluate("run_shell", {"command": command}, SHELL)) == expected
    engine.mode = "plan"
    assert kind(engine.evaluate("run_shell", {"command": command}, SHELL)) == "deny"


def test_evaluating_a_simple_command_is_cheap_once_warm(tmp_path: Path) -> None:
    engine = PermissionEngine(tmp_path, allowed_commands=["git status", "ls", "cat"])
    arguments = {"command": "cat src/main.py"}
    engine.evaluate("run_shell", arguments, SHELL)
    best = min(_seconds(engine, arguments) for _ in range(5))
    assert best / 200 < 100e-6


def _seconds(engine: PermissionEngine, arguments: dict[str, str]) -> float:
    started = time.perf_counter()
    for _ in range(200):
        engine.evaluate("run_shell", arguments, SHELL)
    return time.perf_counter() - started
