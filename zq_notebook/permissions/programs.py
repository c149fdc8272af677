"""Programs that can run other programs or write files through their own arguments (design.md §7).

An allowlist entry exempts a command only as far as its own words go: ``find`` does not exempt ``find . -exec …``. For a
program that is not in this table the entry stands for whatever the program does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from zq_notebook.permissions.commands import Glob
from zq_notebook.permissions.git_commands import git_objection, git_option_objection
from zq_notebook.permissions.options import Options, read_options, words
from zq_notebook.permissions.scripts import awk_objection, sed_objection

Judge = Callable[[Sequence[str]], str | None]

# What these are given decides entirely what they do. Only the exact command can be allowed, never the name alone.
_RUNNERS = words(
    "env xargs sudo doas su runuser nohup timeout nice ionice chrt taskset setsid stdbuf time watch script parallel "
    "flock chroot unshare nsenter setpriv strace ltrace gdb lldb valgrind perf systemd-run at batch crontab entr "
    "expect socat nc ncat ssh scp sftp tmux screen dbus-run-session xdg-open open busybox toybox ld.so "
    "sh bash dash zsh ksh mksh fish csh tcsh ash rbash pwsh powershell cmd "
    "vi vim nvim view vimdiff ex ed emacs emacsclient nano pico joe micro less more most man info lynx w3m "
    "sqlite3 psql mysql mariadb mongosh redis-cli dc m4 tclsh wish gnuplot npx uvx bunx pipx direnv "
    # Builtins that evaluate their arguments, change what later words mean, or load code.
    ". source eval exec command builtin alias unalias bind coproc declare typeset local readonly export set shopt "
    "enable fc hash history jobs let mapfile readarray read trap unset complete compgen compopt getopts function select"
)
_HARMLESS_ALONE = (("--version",), ("--help",))

_SORT = Options(
    flags="bcCdfghiMmnRrsuVz",
    valued="ktS",
    long=words(
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort "
        "human-numeric-sort numeric-sort random-sort reverse version-sort check merge stable unique "
        "zero-terminated debug"
    ),
    long_valued=words("key field-separator buffer-size parallel sort"),
)
_UNIQ = Options(
    flags="cdDuiz",
    valued="fsw",
    long=words("count repeated all-repeated group ignore-case unique zero-terminated"),
    long_valued=words("skip-fields skip-chars check-chars"),
    numeric=True,
)
_SED = Options(
    flags="nErsuz",
    valued="e",
    long=words("quiet silent regexp-extended separate unbuffered null-data posix sandbox debug"),
    long_valued=words("expression"),
)
_TAR = Options(
    flags="xctzjJvkpmaO",
    valued="f",
    long=words("extract create list gzip bzip2 xz zstd verbose keep-old-files auto-compress to-stdout wildcards"),
    long_valued=words("file strip-components exclude"),
)
_CURL = Options(
    flags="sSLfIivgG46k",
    valued="HAeXm",
    long=words("silent show-error location fail fail-with-body head include verbose get insecure compressed http2"),
    long_valued=words("header user-agent referer request max-time connect-timeout retry url"),
)
_TREE = Options(
    flags="adfilpsuhDgtrcUvFJXnC",
    valued="LPI",
    long=words("gitignore dirsfirst filesfirst noreport prune du si inodes device matchdirs ignore-case"),
    long_valued=words("filelimit charset sort"),
)
_SHUF = Options(
    flags="ezr", valued="in", long=words("echo zero-terminated repeat"), long_valued=words("input-range head-count")
)
_PYTHON = Options(flags="bBdEIOPqsSuvVx", valued="WX", stop_at_operand=True)
_SCRIPT_ONLY = Options(flags="wv", long=words("version test check"), stop_at_operand=True)

_FIND_PLAIN = words(
    "-L -H -P ! -not -a -and -o -or ( ) , -print -print0 -ls -prune -quit -depth -d -daystart -follow -mount -xdev "
    "-noleaf -warn -nowarn -ignore_readdir_race -noignore_readdir_race -empty -executable -readable -writable -true "
    "-false -nouser -nogroup"
)
_FIND_VALUED = words(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -atime "
    "-ctime -mmin -amin -cmin -newer -anewer -cnewer -perm -user -group -uid -gid -links -inum -samefile -lname "
    "-ilname -fstype -used -maxdepth -mindepth -printf"
)
_FIND_ACTIONS = ("-exec", "-ok", "-delete", "-fprint", "-fls")


def _closed(options: Options, *, operands: int | None = None) -> Judge:
    """A judge that knows the harmless options and, if given, how many operands are read and not written."""

    def judge(arguments: Sequence[str]) -> str | None:
        reading = read_options(arguments, options)
        if reading.unknown is not None:
            return f"the option {reading.unknown}, which is not known to be harmless"
        if operands is not None and len(reading.operands) > operands:
            return f"the argument {reading.operands[operands]}, which would be written to"
        return None

    return judge


def _find(arguments: Sequence[str]) -> str | None:
    pending = list(arguments)
    for argument in pending:
        if argument.lower().startswith(_FIND_ACTIONS):
            return f"find {argument}, which runs programs or changes files"
    while pending:
        argument = pending.pop(0)
        if argument in _FIND_VALUED or re.fullmatch(r"-newer[aBcm][aBcmt]", argument):
            pending = pending[1:]
        elif argument.startswith("-") and argument not in _FIND_PLAIN:
            return f"find {argument}, which is not known to be harmless"
    return None


def _sed(arguments: Sequence[str]) -> str | None:
    reading = read_options(arguments, _SED)
    if reading.unknown is not None:
        return f"sed {reading.unknown}, which is not known to be harmless"
    scripts = [value for _, value in reading.values] or reading.operands[:1]
    if len(scripts) > 1 and any(script.endswith("\\") for script in scripts):
        return "sed scripts that continue each other"
    for script in scripts:
        if isinstance(script, Glob):
            return "a sed script that depends on file names"
        if (reason := sed_objection(script)) is not None:
            return reason
    return None


def _awk(arguments: Sequence[str]) -> str | None:
    reading = read_options(arguments, Options(valued="Fv", stop_at_operand=True))
    if reading.unknown is not None:
        return f"awk {reading.unknown}, which is not known to be harmless"
    for program in reading.operands[:1]:
        if isinstance(program, Glob):
            return "an awk program that depends on file names"
        return awk_objection(program)
    return None


def _python(arguments: Sequence[str]) -> str | None:
    known = words("pytest unittest mypy ruff black isort flake8 pylint coverage pip venv compileall tox nox")
    if len(arguments) >= 2 and arguments[0] == "-m" and arguments[1] in known:
        return None
    return _closed(_PYTHON)(arguments)


def _tar(arguments: Sequence[str]) -> str | None:
    if arguments and not arguments[0].startswith("-"):
        arguments = ["-" + arguments[0], *arguments[1:]]
    reading = read_options(arguments, _TAR)
    if reading.unknown is not None:
        return f"tar {reading.unknown}, which is not known to be harmless"
    remote = any(":" in value for name, value in reading.values if name in ("f", "file"))
    return "an archive on another machine" if remote else None


def _options_before_dashes(arguments: Sequence[str], dangerous: frozenset[str]) -> str | None:
    """The first argument before ``--`` that is, or abbreviates or sets, one of ``dangerous``."""
    for argument in arguments:
        if argument == "--":
            return None
        name = argument.partition("=")[0]
        if name in dangerous or (name.startswith("--") and any(item.startswith(name) for item in dangerous)):
            return f"{name}, which can run programs or write files"
    return None


def _denying(*, options: str, subcommands: str = "") -> Judge:
    dangerous, first = words(options), words(subcommands)

    def judge(arguments: Sequence[str]) -> str | None:
        command = next((argument for argument in arguments if not argument.startswith(("-", "+"))), "")
        if command in first:
            return f"{command}, which runs what it is given"
        return _options_before_dashes(arguments, dangerous)

    return judge


def _make(arguments: Sequence[str]) -> str | None:
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if equals and not argument.startswith("-") and ("$" in value or name.rstrip(":+?!") in _MAKE_VARIABLES):
            return f"the make variable {name}, which can run programs"
        if re.match(r"-[A-Za-z]*[fCIEW]", argument):
            return f"make {argument}, which is not known to be harmless"
    return _options_before_dashes(arguments, words("--eval --file --makefile --directory --include-dir"))


_MAKE_VARIABLES = words("SHELL .SHELLFLAGS MAKEFLAGS MAKEFILES GNUMAKEFLAGS MAKE CC LD")


def _fd(arguments: Sequence[str]) -> str | None:
    for argument in arguments:
        if re.match(r"-[A-Za-z]*[xX]", argument) or argument.startswith("--exec"):
            return f"fd {argument}, which runs programs"
    return None


def _rg(arguments: Sequence[str]) -> str | None:
    for argument in arguments:
        if argument.startswith("--hostname-bin") or argument.partition("=")[0] == "--pre":
            return f"rg {argument}, which runs programs"
    return None


def _evaluating_builtin(arguments: Sequence[str]) -> str | None:
    """``test``, ``[`` and ``printf`` evaluate array subscripts in a few of their arguments."""
    for argument in arguments:
        if argument in ("-v", "-R") or argument.startswith("-v") or ("[" in argument and "]" in argument):
            return f"the argument {argument}, which the shell may evaluate"
    return None


def _docker(arguments: Sequence[str]) -> str | None:
    readers = words("ps images version info logs inspect stats top port diff history search")
    if arguments and arguments[0] not in readers:
        return f"{arguments[0]}, which can run programs and reach every file"
    return None


_JUDGES: Mapping[str, Judge] = {
    "git": git_objection,
    "find": _find,
    "sed": _sed,
    "gsed": _sed,
    "awk": _awk,
    "gawk": _awk,
    "mawk": _awk,
    "nawk": _awk,
    "sort": _closed(_SORT),
    "uniq": _closed(_UNIQ, operands=1),
    "shuf": _closed(_SHUF),
    "tree": _closed(_TREE),
    "curl": _closed(_CURL),
    "wget": _closed(Options(flags="qvS", long=words("spider quiet"))),
    "xxd": _closed(Options(flags="abeiupEC", valued="cglos"), operands=1),
    "file": _closed(Options(flags="bhikLNprsSvz0", long=words("brief mime mime-type mime-encoding dereference"))),
    "tar": _tar,
    "zip": _closed(Options(flags="rqvj0123456789", long=words("recurse-paths"))),
    "python": _python,
    "node": _closed(_SCRIPT_ONLY),
    "deno": _denying(options="", subcommands="eval run repl task install"),
    "bun": _denying(options="-e --eval -p --print --preload -r", subcommands="x create init"),
    "perl": _closed(Options(flags="wvT", stop_at_operand=True)),
    "ruby": _closed(Options(flags="wv", stop_at_operand=True)),
    "php": _closed(Options(flags="v", stop_at_operand=True)),
    "lua": _closed(Options(flags="v", stop_at_operand=True)),
    "julia": _closed(Options(flags="v", stop_at_operand=True)),
    "Rscript": _closed(Options(long=words("vanilla verbose"), stop_at_operand=True)),
    "ipython": _closed(Options(stop_at_operand=True)),
    "npm": _denying(
        options="--script-shell --call -c --prefix -C --userconfig --globalconfig --node-options",
        subcommands="exec x create init explore edit config set",
    ),
    "pnpm": _denying(
        options="--script-shell --shell-mode -c --dir -C --prefix", subcommands="exec dlx create config set"
    ),
    "yarn": _denying(options="--script-shell --cwd", subcommands="exec dlx create config"),
    "uv": _denying(options="--project --directory", subcommands="run tool"),
    "poetry": _denying(options="--directory -C", subcommands="run shell config"),
    "pipenv": _denying(options="", subcommands="run shell"),
    "pdm": _denying(options="--project -p", subcommands="run config"),
    "hatch": _denying(options="", subcommands="run shell"),
    "conda": _denying(options="", subcommands="run"),
    "mamba": _denying(options="", subcommands="run"),
    "go": _denying(
        options="-exec -toolexec -vettool -o -C --exec --toolexec --vettool", subcommands="run generate env"
    ),
    "cargo": _denying(options="--config -Z -C", subcommands="run install"),
    "rsync": _denying(options="-e --rsh --rsync-path --log-file --temp-dir --backup-dir"),
    "docker": _docker,
    "podman": _docker,
    "make": _make,
    "gmake": _make,
    "fd": _fd,
    "fdfind": _fd,
    "rg": _rg,
    "ag": _denying(options="--pager"),
    "ack": _denying(options="--pager"),
    "bat": _denying(options="--pager --generate-config-file", subcommands="cache"),
    "yq": _denying(options="-i --inplace --in-place -s --split-exp"),
    "test": _evaluating_builtin,
    "[": _evaluating_builtin,
    "printf": _evaluating_builtin,
}


def _name(program: str) -> str:
    """The name under which a program is judged: without directory, ``.exe`` and Python's version."""
    name = program.rsplit("/", 1)[-1].removesuffix(".exe")
    return "python" if re.fullmatch(r"(python|pypy)[0-9.]*", name) else name


def runs_anything(program: str) -> bool:
    """Whether a program does whatever its arguments say, so that its name alone can never be allowed."""
    return _name(program) in _RUNNERS


def objection(command: Sequence[str]) -> str | None:
    """Why a command may run a program or write a file through its own arguments, or ``None``."""
    program, arguments = command[0], command[1:]
    if tuple(arguments) in _HARMLESS_ALONE:
        return None
    if runs_anything(program):
        return f"{program}, which runs what it is given" if arguments else None
    judge = _JUDGES.get(_name(program))
    if judge is None:
        return None
    for argument in arguments:
        # A pattern that begins a word may become an option, when there is a file with such a name.
        if isinstance(argument, Glob) and not re.match(r"[A-Za-z0-9_./~]", argument):
            return f"{argument}, which may become an option of {program}"
    return judge(arguments)


def residual_objection(command: Sequence[str], prefix: Sequence[str]) -> str | None:
    """:func:`objection`, without what the allowlist entry ``prefix`` itself names."""
    reason = objection(command)
    if reason is None or len(command) == len(prefix) or objection(prefix) is None:
        return None if len(command) == len(prefix) else reason
    if runs_anything(command[0]):
        return reason
    rest = command[len(prefix) :]
    if _name(command[0]) == "git":
        return git_option_objection(prefix[1], rest)
    return objection((command[0], *rest))
