"""A repository that brings its own programs along does not get them run by an allowed ``git status``."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from zq_notebook.permissions.decision import PermissionEngine
from zq_notebook.permissions.gitrepo import RepositoryRisk, check_config

SHELL = {"category": "shell", "riskLevel": "high", "capabilities": ["execute"], "requiresApproval": True}
ENV = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_PAGER": "cat"}


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=False, capture_output=True, env=ENV, timeout=20)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "config", "user.name", "a")
    git(root, "config", "user.email", "a@b")
    (root / "f.txt").write_text("one\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    (root / "f.txt").write_text("two\n")
    return root


def allowed(root: Path, command: str, cwd: str = ".") -> bool:
    engine = PermissionEngine(root, allowed_commands=["git status", "git diff"])
    decision = engine.evaluate("run_shell", {"command": command, "cwd": cwd}, SHELL)
    assert decision.allowed != decision.needs_user
    return decision.allowed


def marker_script(root: Path) -> str:
    """A program that makes the file F in the repository and behaves as a filter."""
    script = root.parent / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch '{root}/F'\ncat 2>/dev/null </dev/null\nexit 0\n")
    script.chmod(0o755)
    return str(script)


def by_fsmonitor(root: Path) -> None:
    git(root, "config", "core.fsmonitor", marker_script(root))


def by_external_diff(root: Path) -> None:
    git(root, "config", "diff.external", marker_script(root))


def by_diff_driver(root: Path) -> None:
    (root / ".gitattributes").write_text("*.txt diff=x\n")
    git(root, "config", "diff.x.command", marker_script(root))


def by_text_converter(root: Path) -> None:
    (root / ".gitattributes").write_text("*.txt diff=x\n")
    git(root, "config", "diff.x.textconv", marker_script(root))


def by_filter(root: Path) -> None:
    (root / ".gitattributes").write_text("*.txt filter=x\n")
    git(root, "config", "filter.x.clean", marker_script(root))


def by_include(root: Path) -> None:
    (root / "more").write_text(f"[core]\n\tfsmonitor = {marker_script(root)}\n")
    git(root, "config", "include.path", "../more")


def by_worktree_config(root: Path) -> None:
    git(root, "config", "extensions.worktreeConfig", "true")
    (root / ".git" / "config.worktree").write_text(f"[core]\n\tfsmonitor = {marker_script(root)}\n")


def by_hook(root: Path) -> None:
    hook = root / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(Path(marker_script(root)).read_text())
    hook.chmod(0o755)
    os.utime(root / "f.txt", (1, 1))
    (root / "f.txt").write_text("one\n")


def by_hooks_path(root: Path) -> None:
    by_hook(root)
    (root / ".git" / "hooks").rename(root / "elsewhere")
    git(root, "config", "core.hooksPath", "elsewhere")


def by_gitdir_file(root: Path) -> None:
    (root / ".git").rename(root / "store")
    (root / ".git").write_text("gitdir: store\n")
    git(root, "config", "core.fsmonitor", marker_script(root))


def by_embedded_repository(root: Path) -> None:
    inner = root / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "x").write_text("x")
    git(inner, "add", "-A")
    git(inner, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
    git(root, "add", "inner")
    git(inner, "config", "core.fsmonitor", marker_script(root))


def by_bare_repository(root: Path) -> None:
    """The workspace itself is laid out like the inside of a repository."""
    for item in list((root / ".git").iterdir()):
        item.rename(root / item.name)
    (root / ".git").rmdir()
    (root / "config").write_text(
        f"[core]\n\tbare = false\n\trepositoryformatversion = 0\n\tworktree = .\n\tfsmonitor = {marker_script(root)}\n"
    )


@pytest.mark.parametrize("command", ["git status", "git diff"])
@pytest.mark.parametrize(
    "arrange",
    [
        by_fsmonitor,
        by_external_diff,
        by_diff_driver,
        by_text_converter,
        by_filter,
        by_include,
        by_worktree_config,
        by_hook,
        by_hooks_path,
        by_gitdir_file,
        by_embedded_repository,
        by_bare_repository,
    ],
)
def test_repository_that_runs_programs_is_asked_about(repository: Path, arrange, command: str) -> None:
    assert allowed(repository, command)
    arrange(repository)
    assert not allowed(repository, command)
    # The arrangement is real: at least one of the two commands does run the program.
    for real in (["status"], ["diff"]):
        git(repository, *real)
    assert (repository / "F").exists()


def test_repository_is_found_from_below(repository: Path) -> None:
    (repository / "a" / "b").mkdir(parents=True)
    assert allowed(repository, "git status", cwd="a/b")
    by_fsmonitor(repository)
    assert not allowed(repository, "git status", cwd="a/b")


def test_mended_configuration_is_noticed(repository: Path) -> None:
    by_fsmonitor(repository)
    assert not allowed(repository, "git status")
    git(repository, "config", "core.fsmonitor", "false")
    assert allowed(repository, "git status")


def test_linked_worktree_is_judged_by_the_main_configuration(repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "linked")
    assert allowed(repository, "git status", cwd="linked")
    by_external_diff(repository)
    assert not allowed(repository, "git status", cwd="linked")


def test_ordinary_clone_with_branches_and_remotes_is_allowed(repository: Path) -> None:
    clone = repository.parent / "clone"
    git(repository.parent, "clone", "-q", str(repository), str(clone))
    git(clone, "checkout", "-qb", "topic", "--track", "origin/HEAD")
    git(clone, "config", "pull.rebase", "true")
    assert allowed(clone, "git status")


@pytest.mark.parametrize(
    "text",
    [
        "[core]\n\tfsmonitor = touch F\n",
        "[core] fsmonitor = touch F\n",
        "[core]fsmonitor=touch F",
        "[CORE]\nFSMonitor = touch F\n",
        '[diff "x"]\n\ttextconv = touch F\n',
        '[merge "x"]\n\tdriver = touch F\n',
        '[filter "x"]\nclean=touch F\n',
        "[core]\n\tbare = a\x0c[user]\nfsmonitor = touch F\n",
        "[core]\n\tbare = a\x0b[user]\n",
        "[user]\n\tname = a \\\n[core]\n",
        "[include]\npath = x\n",
        '[includeIf "gitdir:/"]\npath = x\n',
        "[alias]\n\tstatus = !touch F\n",
        "[core]\n\tpager = touch F\n",
        "[core]\n\tfsmonitor = yes\n",
        "[core]\n\tsshCommand = touch F\n",
        "[gpg]\n\tprogram = touch F\n",
        "[core.x]\n\tbare = true\n",
        "fsmonitor = x\n",
        "[core\n",
        "[user] name = x\n[[core]]\n",
    ],
)
def test_configuration_that_is_not_known_to_be_harmless_is_refused(text: str) -> None:
    with pytest.raises(RepositoryRisk):
        check_config(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# comment\n; other\n",
        "[core]\n\trepositoryformatversion = 0\n\tbare\n",
        '[remote "origin"]\r\n\turl = git@host:x.git ; c\r\n\tfetch = +refs/heads/*:refs/remotes/origin/*\r\n',
        '[branch "a]b"]\n\tmerge = refs/heads/main\n[user] name = x\n',
        "[core]\n\tfsmonitor = true\n",
    ],
)
def test_ordinary_configuration_is_accepted(text: str) -> None:
    check_config(text)


def test_program_of_the_workspace_does_not_take_an_allowed_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    monkeypatch.setenv("PATH", f"{bin_dir}{os.pathsep}{os.environ['PATH']}")
    engine = PermissionEngine(tmp_path, allowed_commands=["ls", "python3"])
    assert engine.evaluate("run_shell", {"command": "ls"}, SHELL).allowed
    for name in ("ls", "python3"):
        (bin_dir / name).write_text("#!/bin/sh\n")
    assert engine.evaluate("run_shell", {"command": "ls"}, SHELL).needs_user
    # A virtual environment in the workspace is the usual case, and its python runs the workspace's code anyway.
    assert engine.evaluate("run_shell", {"command": "python3 x.py"}, SHELL).allowed
