"""Which git command lines run nothing and write nothing through their own options."""

from __future__ import annotations

from collections.abc import Sequence

from zq_notebook.permissions.options import words

_GLOBAL_FLAGS = words("--no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --no-replace-objects")
_READERS = words(
    "status diff log show shortlog blame annotate grep ls-files ls-tree rev-parse rev-list describe cat-file name-rev "
    "merge-base diff-tree diff-index diff-files show-ref for-each-ref reflog count-objects whatchanged cherry "
    "show-branch check-ignore check-attr version range-diff"
)
_OTHERS = words(
    "add am apply branch checkout cherry-pick clean commit fetch gc merge mv notes prune pull push rebase remote "
    "reset restore revert rm sparse-checkout stash switch tag update-index update-ref fsck symbolic-ref "
    "submodule bisect config"
)
# Long options of the reading commands. A name that is not here, an abbreviation included, has to be asked about.
_READER_OPTIONS = words(
    "patch no-patch raw patch-with-raw stat numstat shortstat dirstat cumulative dirstat-by-file summary "
    "patch-with-stat name-only name-status submodule color no-color color-moved color-moved-ws word-diff "
    "word-diff-regex color-words no-renames rename-empty check ws-error-highlight full-index binary abbrev no-abbrev "
    "break-rewrites find-renames find-copies find-copies-harder irreversible-delete diff-filter pickaxe-all "
    "pickaxe-regex find-object skip-to rotate-to relative text ignore-cr-at-eol ignore-space-at-eol "
    "ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines inter-hunk-context "
    "function-context exit-code quiet no-ext-diff no-textconv ignore-submodules src-prefix dst-prefix no-prefix "
    "default-prefix line-prefix unified minimal patience histogram anchored diff-algorithm indent-heuristic cached "
    "staged merge-base no-index base ours theirs output-indicator-new output-indicator-old output-indicator-context "
    "max-count skip since after until before author committer grep all-match invert-grep regexp-ignore-case "
    "basic-regexp extended-regexp fixed-strings perl-regexp merges no-merges min-parents max-parents no-min-parents "
    "no-max-parents first-parent exclude-first-parent-only not all branches tags remotes glob exclude reflog "
    "alternate-refs single-worktree ignore-missing boundary cherry-mark cherry-pick left-only right-only left-right "
    "cherry walk-reflogs merge simplify-by-decoration simplify-merges show-pulls full-history dense sparse "
    "ancestry-path date-order author-date-order topo-order reverse no-walk do-walk pretty format abbrev-commit "
    "no-abbrev-commit oneline encoding expand-tabs no-expand-tabs notes no-notes show-notes show-notes-by-default date "
    "relative-date parents children graph show-linear-break count follow decorate no-decorate decorate-refs source "
    "use-mailmap mailmap no-mailmap full-diff log-size combined-all-paths cc dd diff-merges no-diff-merges root "
    "short branch no-branch show-stash porcelain long verbose untracked-files ignored null column no-column "
    "ahead-behind no-ahead-behind renames numbered email group incremental show-name show-number show-email "
    "line-porcelain progress no-progress score-debug cached no-index untracked no-exclude-standard exclude-standard "
    "invert-match files-with-matches name-only files-without-match count only-matching heading show-function "
    "threads and or max-depth recursive no-recursive word-regexp ignore-case line-number full-name after-context "
    "before-context context deleted modified others stage directory no-empty-directory unmerged killed error-unmatch "
    "with-tree eol deduplicate recurse-submodules verify is-inside-work-tree is-inside-git-dir is-bare-repository "
    "show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir git-path symbolic symbolic-full-name "
    "abbrev-ref sq sq-quote revs-only no-revs flags no-flags default prefix local-env-vars show-object-format "
    "contains candidates exact-match debug match dirty broken always tags long batch batch-check batch-all-objects "
    "unordered buffer is-ancestor octopus independent fork-point heads dereference hash exclude-existing sort "
    "points-at merged no-merged no-contains refs stdin name-objects objects objects-edge unpacked disk-usage bisect "
    "human-readable timestamp header max-age min-age no-commit-id pretty diff-merges get-url symref exit-code"
)
# Options of the other commands that name a program to run or a file to write, abbreviations included.
_DANGEROUS_OPTIONS = words(
    "--exec --upload-pack --receive-pack --output --output-directory --ext-diff --textconv --open-files-in-pager "
    "--config --config-env --extcmd --tool --template --separate-git-dir --reference --unsafe-paths --to-cmd --cc-cmd "
    "--smtp-server --shell --command --upload-archive --prefix --directory --git-dir --work-tree --exec-path --filters "
    "--edit-description --pathspec-from-file --file --global --system --worktree --build-fake-ancestor"
)
_DANGEROUS_LETTERS = {"rebase": "x", "clone": "cu", "grep": "O", "archive": "o", "format-patch": "o", "config": "f"}
_ALWAYS = "O"  # git grep -O runs a pager; elsewhere the letter is rare enough to ask
_READING_CONFIG = words(
    "--get --get-all --get-regexp --list -l get list --name-only --show-origin --show-scope --local"
)


def git_objection(arguments: Sequence[str]) -> str | None:
    """Why ``git`` with these arguments may run a program or write where it likes, or ``None``."""
    rest = list(arguments)
    while rest and rest[0] in _GLOBAL_FLAGS:
        rest.pop(0)
    if not rest or rest == ["--version"]:
        return None
    command = rest[0]
    if command not in _READERS | _OTHERS:
        return f"git {command}, which is not one of the git commands known to be harmless"
    if command in ("bisect", "submodule", "config") and (reason := _subcommand_objection(command, rest[1:])):
        return reason
    return git_option_objection(command, rest[1:])


def _subcommand_objection(command: str, arguments: Sequence[str]) -> str | None:
    first = next((argument for argument in arguments if not argument.startswith("-")), "")
    if command == "config":
        return None if arguments and arguments[0] in _READING_CONFIG else "git config, which can name programs to run"
    if (command, first) in (("bisect", "run"), ("bisect", "visualize"), ("bisect", "view"), ("submodule", "foreach")):
        return f"git {command} {first}, which runs a program"
    return None


def git_option_objection(command: str, arguments: Sequence[str]) -> str | None:
    """Why an option among ``arguments`` of ``git command`` may run a program or write a file, or ``None``."""
    letters = _DANGEROUS_LETTERS.get(command, "") + _ALWAYS
    for argument in arguments:
        if argument == "--":
            return None
        if not argument.startswith("-") or argument == "-":
            continue
        name = argument.partition("=")[0]
        if name.startswith("--"):
            if command in _READERS:
                bad = name[2:] not in _READER_OPTIONS and name[2:].removeprefix("no-") not in _READER_OPTIONS
            else:
                bad = any(dangerous.startswith(name) for dangerous in _DANGEROUS_OPTIONS)
        else:
            bad = any(letter in argument for letter in letters)
        if bad:
            return f"git {command} {name}, which is not known to be harmless"
    return None
