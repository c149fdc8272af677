"""Whether a repository's own files make an innocent ``git status`` run a program (design.md §7).

Git runs programs that a repository's configuration names (``core.fsmonitor``, ``diff.external``, filters, text
converters), and a repository that was unpacked or downloaded brings its configuration along. Again a closed world: only
keys known to name no program are accepted. The user's own global configuration is trusted.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

from zq_notebook.permissions.options import words

_MAX_CONFIG_BYTES = 256 * 1024
_MAX_INDEX_BYTES = 64 * 1024 * 1024
_GITLINK_MODE = (0o160000).to_bytes(4, "big")
_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)')
_VARIABLE = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?")
_SAFE_SECTIONS = words(
    "user author committer pull push fetch init color column status log advice gc pack index feature rerere branch url"
)
_SAFE_KEYS = {
    "core": words(
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol "
        "safecrlf quotepath abbrev untrackedcache preloadindex commitgraph multipackindex compression sparsecheckout "
        "sparsecheckoutcone longpaths protecthfs protectntfs whitespace checkstat trustctime excludesfile splitindex"
    ),
    "extensions": words("objectformat refstorage partialclone worktreeconfig noop preciousobjects"),
    "remote": words("url fetch pushurl push tagopt prune prunetags mirror skipdefaultupdate promisor gh-resolved")
    | words("partialclonefilter"),
    "diff": words(
        "renames renamelimit algorithm context colormoved mnemonicprefix noprefix submodule ignoresubmodules"
    ),
    "merge": words("ff conflictstyle log renames renamelimit stat"),
    "rebase": words("autosquash autostash stat updaterefs"),
    "commit": words("gpgsign verbose"),
    "tag": words("gpgsign sort"),
    "submodule": words("active url branch fetchrecursesubmodules ignore recurse fetchjobs"),
    "lfs": words("repositoryformatversion access locksverify"),
    "http": words("postbuffer sslverify version lowspeedlimit lowspeedtime"),
}
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# Older gits take any other value, "yes" included, for the name of a program.
_BOOLEANS = words("true false")


class RepositoryRisk(ValueError):
    """Something in the repository may run a program; the message says what."""


def _check_variable(section: str, subsection: str | None, key: str, value: str) -> None:
    if section in _SAFE_SECTIONS:
        return
    if section == "core" and key == "fsmonitor" and value.strip('" ').lower() in _BOOLEANS:
        return
    # diff.NAME.command, merge.NAME.driver and the like exist only with a subsection.
    named_driver = subsection is not None and section in ("diff", "merge")
    if named_driver or key not in _SAFE_KEYS.get(section, frozenset()):
        name = ".".join(part for part in (section, subsection, key) if part)
        raise RepositoryRisk(f"the repository's configuration sets {name}, which may run a program")


def check_config(text: str) -> None:
    """Raise :class:`RepositoryRisk` unless every line of a git configuration is known to run nothing."""
    section, subsection = "", None
    # Only what git itself takes for the end of a line ends one here.
    for raw in text.split("\n"):
        line = raw.removesuffix("\r").strip(" \t")
        if _CONTROL.search(line):
            raise RepositoryRisk("the repository's configuration has control characters")
        while (header := _SECTION.match(line)) is not None:
            section, subsection = header.group(1).lower(), header.group(2)
            line = header.group(3).strip()
        if not line or line[0] in "#;":
            continue
        variable = _VARIABLE.fullmatch(line)
        if variable is None or not section or line.endswith("\\"):
            raise RepositoryRisk("the repository's configuration has a line that cannot be judged")
        _check_variable(section, subsection, variable.group(1).lower(), variable.group(2) or "true")


def _read_bounded(path: Path, limit: int) -> bytes:
    with open(path, "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise RepositoryRisk(f"{path.name} in the repository is too large to be judged")
    return data


_Stamp = tuple[int, int, int, int]


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@lru_cache(maxsize=64)
def _config_risk(path: Path, stamp: _Stamp) -> str | None:
    try:
        check_config(_read_bounded(path, _MAX_CONFIG_BYTES).decode("utf-8", "replace"))
    except RepositoryRisk as error:
        return str(error)
    return None


@lru_cache(maxsize=64)
def _index_risk(path: Path, stamp: _Stamp) -> str | None:
    """A repository inside the repository has a configuration of its own, and git looks into it."""
    if _GITLINK_MODE in _read_bounded(path, _MAX_INDEX_BYTES):
        return "the repository seems to have submodules, whose own configuration may run programs"
    return None


def _git_dir(directory: Path) -> Path | None:
    """The git directory that git would use in ``directory`` itself, or ``None`` when it looks further up."""
    marker = directory / ".git"
    if marker.is_dir():
        return marker
    if marker.is_file():
        content = _read_bounded(marker, 4096).decode("utf-8", "replace").strip()
        if not content.startswith("gitdir:"):
            raise RepositoryRisk("the file .git cannot be judged")
        return Path(os.path.normpath(directory / content.removeprefix("gitdir:").strip()))
    if marker.is_symlink():
        raise RepositoryRisk(".git is a broken link")
    if (directory / "HEAD").exists() and (directory / "objects").exists():
        raise RepositoryRisk(f"{directory} looks like the inside of a repository")
    return None


def _common_dir(git_dir: Path) -> Path:
    """The directory with the configuration; a linked worktree names another one."""
    pointer = git_dir / "commondir"
    if not pointer.is_file():
        return git_dir
    return Path(os.path.normpath(git_dir / _read_bounded(pointer, 4096).decode("utf-8", "replace").strip()))


def repository_risk(cwd: Path) -> str | None:
    """Why git in ``cwd`` (an absolute path) may run a program that a repository names, or ``None``."""
    try:
        for directory in (cwd, *cwd.parents):
            git_dir = _git_dir(directory)
            if git_dir is not None:
                return _risk_of(git_dir)
    except RepositoryRisk as error:
        return str(error)
    except OSError as error:
        return f"the repository cannot be read ({error.strerror})"
    return None


def _risk_of(git_dir: Path) -> str | None:
    common = _common_dir(git_dir)
    for config in (common / "config", git_dir / "config.worktree", common / "config.worktree"):
        stamp = _stamp(config)
        if stamp is not None and (risk := _config_risk(config, stamp)) is not None:
            return risk
    hook = common / "hooks" / "post-index-change"
    if os.access(hook, os.X_OK):
        return "the repository has a post-index-change hook, which git runs even for git status"
    indexes = [git_dir / "index", *git_dir.glob("sharedindex.*")]
    for index in indexes:
        stamp = _stamp(index)
        if stamp is not None and (risk := _index_risk(index, stamp)) is not None:
            return risk
    return None
