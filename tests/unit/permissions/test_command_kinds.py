"""What must not get through, by kind, and everyday commands that must not be a nuisance (Manual §8.5, design.md §7)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from zq_notebook.permissions.decision import Mode, PermissionEngine

ALLOWED = ["ls", "cat", "git status", "git diff", "find", "sed", "awk", "sort"]
SHELL = {"category": "shell", "riskLevel": "high", "capabilities": ["execute"], "requiresApproval": True}
TARGET = "F"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A small git repository with a few files."""
    root = tmp_path / "ws"
    (root / "src").mkdir(parents=True)
    (root / "d").mkdir()
    (root / "f").write_text("b\na\n")
    (root / "src" / "m.py").write_text("import os\nprint('x')\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
    (root / "f").write_text("b\na\nc\n")
    return root


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, env=clean_env())


def clean_env() -> dict[str, str]:
    return {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_PAGER": "cat"}


def bash(root: Path, command: str) -> None:
    subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", command],
        cwd=root,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=20,
        env=clean_env(),
    )


# Each of these, run by bash in the workspace, makes F appear.
REAL_ATTACKS = [
    # a second command
    "ls; touch F",
    "ls;touch F",
    "ls && touch F",
    "true && touch F",
    "false || touch F",
    "ls | tee F",
    "cat f | tee F",
    "cat f |tee F",
    "cat f |& tee F",
    "ls & touch F",
    "ls&touch F",
    "ls\ntouch F",
    "ls\r\ntouch F",
    "ls \n\ttouch F",
    "(touch F)",
    "{ touch F; }",
    "! touch F",
    "time touch F",
    "if true; then touch F; fi",
    "for i in 1; do touch F; done",
    "while ! test -e F; do touch F; done",
    "case x in x) touch F;; esac",
    "ls() { touch F; }; ls",
    "function cat { touch F; }; cat f",
    "shopt -s expand_aliases\nalias ls='touch F'\nls",
    "trap 'touch F' EXIT",
    "coproc touch F; wait",
    # redirections
    "echo x>F",
    "ls >F",
    "ls 2>F",
    "ls &>F",
    "ls >>F",
    "ls >|F",
    "cat <>F",
    "cat <<X >F\nhi\nX",
    "cat <<X\n$(touch F)\nX",
    "cat <<<$(touch F)",
    "cat <(touch F)",
    "sort f > >(cat >F)",
    # substitutions
    "ls $(touch F)",
    'ls "$(touch F)"',
    "ls `touch F`",
    'ls "`touch F`"',
    "ls $((a[$(touch F)]))",
    "ls $[ x=$(touch F)0 ]",
    "echo $[ x='a[$(touch F)]', x ]",
    'ls "${x:-$(touch F)}"',
    "ls ${x:=$(touch F)}",
    "X=$(touch F) ls",
    "X=`touch F`",
    "ls $(<f)$(touch F)",
    # expansions that make words
    "touch${IFS}F",
    "ls;touch${IFS}F",
    "$'\\x74ouch' F",
    "$'touch' F",
    "{touch,F}",
    "tou''ch F",
    "t\\ouch F",
    "'touch' F",
    "x=touch; $x F",
    # wrappers
    "env touch F",
    "env -i /usr/bin/touch F",
    "echo F | xargs touch",
    "xargs touch F",
    "nice touch F",
    "nohup touch F",
    "timeout 5 touch F",
    "command touch F",
    "exec touch F",
    "eval touch F",
    "eval 'touch F'",
    "bash -c 'touch F'",
    "sh -c 'touch F'",
    "CI=1 touch F",
    "cd d && touch ../F",
    # programs with their own ways
    "git -c alias.x='!touch F' x",
    "git -c core.fsmonitor='touch F' status",
    "git -c diff.external='touch F' diff",
    "git diff --output=F",
    "git diff --output F",
    "git diff --stat --output=F",
    "git grep -O'touch F;' os",
    "git grep --open-files-in-pager='touch F;' os",
    "git grep -iO'touch F;' os",
    "git -C . diff --output=F",
    "GIT_EXTERNAL_DIFF='touch F' git diff",
    "find . -maxdepth 0 -exec touch F \\;",
    "find . -maxdepth 0 -exec touch F {} +",
    "find . -maxdepth 0 -execdir touch F \\;",
    "find . -maxdepth 0 '-exec' touch F ';'",
    'find . -maxdepth 0 "-ex"ec touch F ";"',
    "find . -fprint F",
    "find . -fprint0 F",
    "find . -fls F",
    "find . -fprintf F x",
    "sed -n 'w F' f",
    "sed -n wF f",
    "sed -n '1w F' f",
    "sed 's/a/b/w F' f",
    "sed 's/a/b/gw F' f",
    "sed -e p -e 'w F' f",
    "sed --expression='w F' f",
    "sed -n '/a/{p;w F\n}' f",
    "sed '1e touch F' f",
    "sed 's/.*/touch F/e' f",
    "sed -iF p f; ls fF && touch F",
    "awk 'BEGIN{system(\"touch F\")}'",
    'awk \'BEGIN { print "x" > "F" }\'',
    'awk \'BEGIN { print "x" >> "F" }\'',
    'awk \'BEGIN { printf "x" | "cat >F" }\'',
    "awk 'BEGIN { \"touch F\" | getline }'",
    'awk \'1>2 {print > "F"}1{print > "F"}\' f',
    "sort -o F f",
    "sort -oF f",
    "sort f -o F",
    "sort --output=F f",
    "sort --outp F f",
    "sort -uo F f",
    "sort -r -oF f",
]

# The same kinds where running them here shows nothing, because something is not installed or differs by version.
OTHER_ATTACKS = [
    "awk 'BEGIN { for (print 1 > \"F\"; 0;) 1 }'",
    "sed -n 's/[^]/A/;s/B/]/;w F' f",
    "find . -maxdepth 0 -exec touch F ;",
    "git diff --outpu=F",
    "git --exec-path=. status",
    "git --config-env=core.fsmonitor=X status",
    "git -p diff",
    "git diff --ext-diff",
    "git diff --textconv",
    "git --git-dir=evil status",
    "git diff -O F",
    "git difftool -x 'touch F'",
    "git rebase -x 'touch F' HEAD",
    "git bisect run touch F",
    "git submodule foreach touch F",
    "git fetch --upload-pack='touch F' .",
    "git config alias.x '!touch F'",
    "find . -delete",
    "find . -ok touch F \\;",
    "find . -okdir touch F \\;",
    "find -files0-from f",
    "sed -i s/a/b/ f",
    "sed --in-place s/a/b/ f",
    "sed -ni p f",
    "sed s/a/b/ f -i",
    "sed -f script f",
    "sed -n '$!{w F\n}' f",
    "sed 'a\\' -e 'w F' f",
    "sed 'r /etc/passwd' f",
    "awk -f prog f",
    "awk -i inplace 1 f",
    "awk -l filefuncs 1 f",
    "awk -dF 1 f",
    "awk -oF 1 f",
    "awk '@load \"filefuncs\"' f",
    'awk \'BEGIN{f="system"; @f("touch F")}\'',
    "awk 'BEGIN{print |& \"touch F\"}'",
    "awk 'a / system(\"touch F\") / b'",
    "sort --compress-program=touch f",
    "sort -T d f",
    "sort --files0-from=f",
    "sort *",
    "find *",
    "git diff *",
    "sed -n s/a/b/* f",
    "ls\u200b; touch F",
    "\u202els F",
    "ls \u2066f",
    "ls\u00a0-la",
    "ls \U000e0074\U000e006f",
    "\ttouch F",
    "ls\tf",
    "\x00ls",
    "ls \x1b[2K",
    "ls \ud800",
    "lsof",
    "ls-la",
    "./ls",
    "/tmp/ls",
    "LS",
    "git statusx",
    "git  log",
    "git",
    "gitstatus",
    "#ls",
    "ls # comment",
    "ls {a,b}",
    "ls {1..9}",
    "ls 'a",
    'ls "a',
    "ls \\",
    "",
    "   ",
    "ls " + "x" * 2000,
    "; ".join(["ls"] * 60),
    "ls " + " ".join(["f"] * 10_000),
]


def decide(workspace: Path, command: str, allowed: list[str] | None = None, **arguments: object) -> tuple[bool, bool]:
    engine = PermissionEngine(workspace, allowed_commands=ALLOWED if allowed is None else allowed)
    decision = engine.evaluate("run_shell", {"command": command, **arguments}, SHELL)
    assert decision.reason
    return decision.allowed, decision.needs_user


@pytest.mark.parametrize("command", REAL_ATTACKS)
def test_command_that_makes_a_file_is_asked_about(workspace: Path, command: str) -> None:
    bash(workspace, command)
    assert (workspace / TARGET).exists(), "the attack is not real"
    assert decide(workspace, command) == (False, True)


@pytest.mark.parametrize("command", [*REAL_ATTACKS, *OTHER_ATTACKS])
def test_unjudged_command_is_asked_about(workspace: Path, command: str) -> None:
    assert decide(workspace, command) == (False, True)


@pytest.mark.parametrize("command", REAL_ATTACKS[:20])
@pytest.mark.parametrize("mode", [Mode.PLAN, Mode.DISCUSS])
def test_read_only_modes_refuse_every_command(workspace: Path, command: str, mode: Mode) -> None:
    engine = PermissionEngine(workspace, mode=mode, allowed_commands=ALLOWED, shell_policy="all")
    decision = engine.evaluate("run_shell", {"command": command}, SHELL)
    assert (decision.allowed, decision.needs_user) == (False, False)


HARMLESS = [
    ("ls", "ls"),
    ("ls", "ls -la"),
    ("ls", "ls -la src"),
    ("ls", "ls *.py"),
    ("ls", "ls src/*.py"),
    ("ls", "ls -lh --color=never 'src'"),
    ("ls", 'ls "src"'),
    ("ls", "ls ~"),
    ("cat", "cat f"),
    ("cat", "cat src/m.py f"),
    ("cat", "cat -n 'f'"),
    ("head", "head -5 f"),
    ("head", "head -n 5 f"),
    ("tail", "tail -n +2 f"),
    ("wc", "wc -l f src/m.py"),
    ("pwd", "pwd"),
    ("echo", "echo hello world"),
    ("echo", "echo 'a; b | c > d $(x)'"),
    ("grep", "grep -rn 'import os' src"),
    ("grep", "grep -E 'foo|bar' f"),
    ("grep", 'grep "a\\$" f'),
    ("rg", "rg -n 'print\\(' src"),
    ("rg", "rg --glob '*.py' os"),
    ("git status", "git status"),
    ("git status", "git status -sb"),
    ("git status", "git status --porcelain=v1 --untracked-files=all"),
    ("git diff", "git diff"),
    ("git diff", "git diff --stat"),
    ("git diff", "git diff --cached -- f"),
    ("git diff", "git diff HEAD~0 HEAD --name-only"),
    ("git diff", "git diff -U10 -w f"),
    ("git diff", "git diff HEAD@{0}"),
    ("git log", "git log --oneline -5"),
    ("git log", "git log --since='2 weeks ago' --pretty=format:%h --author=a"),
    ("git log", "git log -p --follow -- src/m.py"),
    ("git show", "git show HEAD:f"),
    ("git show", "git show --stat HEAD"),
    ("git blame", "git blame -L 1,2 src/m.py"),
    ("git branch", "git branch -a"),
    ("git grep", "git grep -n 'import os'"),
    ("git ls-files", "git ls-files --others --exclude-standard"),
    ("git", "git rev-parse --abbrev-ref HEAD"),
    ("git", "git --no-pager log -1"),
    ("git", "git --version"),
    ("find", "find . -name '*.py'"),
    ("find", "find . -name \\*.py -type f"),
    ("find", "find src -type f -size +1k -mtime -7"),
    ("find", "find . \\( -name a -o -name b \\) -print"),
    ("find", "find . -path ./node_modules -prune -o -name '*.ts' -print"),
    ("find", "find . -maxdepth 2 -not -name '.*' -printf '%p %s'"),
    ("sed", "sed -n 1,5p f"),
    ("sed", "sed -n '/a/,/b/p' f"),
    ("sed", "sed 's/a/b/g' f"),
    ("sed", "sed -E 's|[a-z]+|x|2' f"),
    ("sed", "sed -e 's/a/b/' -e '$d' f"),
    ("sed", "sed '/^#/d;/^$/d' f"),
    ("sed", "sed -n '$=' f"),
    ("awk", "awk '{print $1}' f"),
    ("awk", "awk -F: 'NR>1 {print $1, $NF}' f"),
    ("awk", "awk -F ',' '{s+=$1} END {print s}' f"),
    ("awk", "awk 'length($0) >= 2' f"),
    ("sort", "sort f"),
    ("sort", "sort -u f"),
    ("sort", "sort -t , -k2,2nr f"),
    ("sort", "sort --reverse --key=1 f"),
    ("uniq", "uniq -c f"),
    ("cut", "cut -d , -f 1 f"),
    ("du", "du -sh src"),
    ("stat", "stat f"),
    ("python", "python --version"),
    ("python", "python src/m.py"),
    ("python -m pytest", "python -m pytest -q tests -k 'not slow'"),
    ("pytest", "pytest -x tests"),
    ("pnpm test", "pnpm test"),
    ("npm", "npm run build"),
    ("make", "make test V=1"),
    ("cargo test", "cargo test --all"),
    ("uv run pytest", "uv run pytest -q"),
    ("sed -i", "sed -i s/a/b/ f"),
    ("git commit", "git commit -m 'a message; with | odd > things'"),
    ("test", "test -f f"),
    ("find . -delete", "find . -delete"),
    ("env touch F", "env touch F"),
]


@pytest.mark.parametrize(("entry", "command"), HARMLESS)
def test_everyday_command_is_not_a_nuisance(workspace: Path, entry: str, command: str) -> None:
    assert decide(workspace, command, [entry]) == (True, False)
    assert decide(workspace, command, [])[0] is False


@pytest.mark.parametrize("command", [command for entry, command in HARMLESS if entry in ALLOWED])
def test_what_is_exempt_leaves_the_workspace_as_it_was(workspace: Path, command: str) -> None:
    assert decide(workspace, command) == (True, False)
    before = {path: path.read_bytes() for path in workspace.rglob("*") if path.is_file() and ".git" not in path.parts}
    bash(workspace, command)
    after = {path: path.read_bytes() for path in workspace.rglob("*") if path.is_file() and ".git" not in path.parts}
    assert after == before


@pytest.mark.parametrize(
    ("entry", "command"),
    [
        ("git diff", "git diff --output=F"),
        ("git", "git -c alias.x='!touch F' x"),
        ("git", "git config alias.x '!touch F'"),
        ("git", "git x"),
        ("find", "find . -exec touch F \\;"),
        ("env", "env touch F"),
        ("xargs", "xargs touch"),
        ("sh", "sh -c 'touch F'"),
        ("bash", "bash script.sh"),
        ("python", 'python -c \'open("F","w")\''),
        ("python3", "python3 -Ic 1"),
        ("node", "node -e 1"),
        ("perl", "perl -e 1"),
        ("tar", "tar xf a.tar --to-command=touch"),
        ("tar", "tar -cf a.tar -I 'touch F' f"),
        ("tar", "tar cIf 'touch F' a.tar f"),
        ("rg", "rg --pre=touch x"),
        ("rg", "rg --pre touch x"),
        ("fd", "fd -x touch F"),
        ("uniq", "uniq f F"),
        ("curl", "curl -o F http://localhost"),
        ("curl", "curl -sSLoF http://localhost"),
        ("less", "less -oF f"),
        ("uv", "uv run touch F"),
        ("npm", "npm exec touch F"),
        ("make", "make --eval='x:=$(shell touch F)'"),
        ("make", "make test V='$(shell touch F)'"),
        ("printf", "printf -v 'a[$(touch F)]' x"),
        ("printf", "printf %n 'a[$(touch F)]'"),
        ("test", "test -v 'a[$(touch F)]'"),
        ("[", "[ -v 'a[$(touch F)]' ]"),
        ("command", "command touch F"),
        ("vim", "vim -c ':!touch F'"),
        ("ssh", "ssh -oProxyCommand='touch F' x"),
        ("env touch", "env touch F"),
        ("git push", "git push --receive-pack='touch F' ."),
        ("git commit", "git -c core.editor='touch F' commit"),
        ("/usr/bin/find", "/usr/bin/find . -exec touch F \\;"),
    ],
)
def test_shorter_allowlist_entry_does_not_exempt_what_a_program_runs_or_writes(
    workspace: Path, entry: str, command: str
) -> None:
    assert decide(workspace, command, [entry]) == (False, True)


def test_allowlisted_command_in_a_directory_outside_is_asked_about(workspace: Path) -> None:
    assert decide(workspace, "ls", cwd="src") == (True, False)
    assert decide(workspace, "ls", cwd="..") == (False, True)
    assert decide(workspace, "ls", cwd="/") == (False, True)


def test_allowlist_does_not_cover_arguments_it_does_not_know(workspace: Path) -> None:
    assert decide(workspace, "ls", timeout=5, background=False) == (True, False)
    assert decide(workspace, "ls", env={"LD_PRELOAD": "x.so"}) == (False, True)
