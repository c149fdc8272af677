"""One command line read as one program and its plain words, or not at all (design.md §7).

The world is closed: a command is *plain* only if two independent readers, a strict tokenizer of our own and
tree-sitter-bash, agree on the same list of words and neither met anything that a shell would act on. Everything else
has to be asked about, and :class:`NotPlain` says why in words a user understands.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from zq_notebook.permissions.invisible import invisible_characters

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_COMMAND_CHARS = 2000
_PROGRAM = re.compile(r"[A-Za-z0-9_./@+:-]*[A-Za-z0-9_][A-Za-z0-9_./@+:-]*")
_OPERATORS = {
    ";": "a second command after ';'",
    "&": "a second or background command with '&'",
    "|": "a pipe",
    "<": "a redirection",
    ">": "a redirection",
    "(": "a subshell or function",
    ")": "a subshell or function",
    "`": "a command substitution",
    "$": "an expansion ('$')",
}
_parsing = threading.Lock()  # one parser serves the engines of all threads
_GLOB_CHARS = frozenset("*?[")
_UNQUOTE_IN_DOUBLE = frozenset('$`"\\')
# Words that the shell itself acts on when they come first.
_RESERVED_WORDS = "! [[ ]] { } case coproc do done elif else esac fi for function if in select then time until while"
_RESERVED = frozenset(re.split(" ", _RESERVED_WORDS))


class NotPlain(ValueError):
    """The command is not one program with plain words; the message says what else it contains."""


class Glob(str):
    """A word with an unquoted ``*``, ``?`` or ``[``: what it becomes depends on the files that exist."""

    __slots__ = ()


class PlainCommand(msgspec.Struct, frozen=True):
    """A program and its arguments, quotes removed. Words that the shell may expand to file names are :class:`Glob`."""

    words: tuple[str, ...]

    @property
    def program(self) -> str:
        """The first word, as it was written."""
        return self.words[0]

    @property
    def arguments(self) -> tuple[str, ...]:
        """The words after the first."""
        return self.words[1:]


def _quoted_end(text: str, start: int, quote: str) -> int:
    end = text.find(quote, start)
    if end < 0:
        raise NotPlain("a quote that is never closed")
    return end


def _double_quoted(text: str, start: int) -> tuple[str, int]:
    """The content of a double-quoted string that begins after ``start``, and the index after its closing quote."""
    out: list[str] = []
    i = start
    while i < len(text):
        char = text[i]
        if char == '"':
            return "".join(out), i + 1
        if char == "\\":
            following = text[i + 1 : i + 2]
            if following in _UNQUOTE_IN_DOUBLE and following:
                out.append(following)
            else:
                out.append(char + following)
            i += 2
            continue
        if char in "$`":
            raise NotPlain(_OPERATORS[char] + " inside double quotes")
        out.append(char)
        i += 1
    raise NotPlain("a quote that is never closed")


def _one_word(text: str, start: int) -> tuple[str, int]:
    """The word that begins at ``start``, and the index after it."""
    out: list[str] = []
    bare: list[str] = []  # the unquoted characters only, to find globs and braces
    i = start
    while i < len(text) and text[i] != " ":
        char = text[i]
        if char == "'":
            end = _quoted_end(text, i + 1, "'")
            out.append(text[i + 1 : end])
            i = end + 1
        elif char == '"':
            content, i = _double_quoted(text, i + 1)
            out.append(content)
        elif char == "\\":
            if i + 1 >= len(text):
                raise NotPlain("a backslash at its end")
            out.append(text[i + 1])
            i += 2
        elif char in _OPERATORS:
            raise NotPlain(_OPERATORS[char])
        elif char == "#" and i == start:
            raise NotPlain("a comment")
        else:
            out.append(char)
            bare.append(char)
            i += 1
    unquoted = "".join(bare)
    if ("{" in unquoted or "}" in unquoted) and ("," in unquoted or ".." in unquoted):
        raise NotPlain("a brace expansion")
    word = "".join(out)
    return (Glob(word) if _GLOB_CHARS.intersection(unquoted) else word), i


def _tokenize(command: str) -> tuple[str, ...]:
    words: list[str] = []
    i = 0
    while i < len(command):
        if command[i] == " ":
            i += 1
            continue
        start = i
        word, i = _one_word(command, start)
        if not words and command[start:i] != word:
            raise NotPlain("a program name that is quoted or escaped")
        words.append(word)
    if not words:
        raise NotPlain("no program")
    first = words[0]
    if first in _RESERVED:
        raise NotPlain(f"the shell keyword {first!r}")
    if "=" in first:
        raise NotPlain("an assignment before the program")
    if first != "[" and (isinstance(first, Glob) or not _PROGRAM.fullmatch(first)):
        raise NotPlain("a program name with unusual characters")
    return tuple(words)


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _node_text(node: Node) -> str:
    """The value of a word node; raises for any node that is not plain text."""
    raw = (node.text or b"").decode()
    match node.type:
        case "word" | "number" if not node.named_children:
            return _unescape(raw)
        case "raw_string":
            return raw[1:-1]
        case "string" if all(child.type == "string_content" for child in node.named_children):
            return re.sub(r'\\([$`"\\])', r"\1", raw[1:-1])
        case "concatenation":
            # What lies between two children would be text that the grammar skipped.
            joined = b"".join(child.text or b"" for child in node.children)
            if joined == node.text:
                return "".join(_node_text(child) for child in node.children)
    raise NotPlain(f"shell syntax ({node.type.replace('_', ' ')})")


def _tree_words(command: str) -> tuple[str, ...]:
    with _parsing:
        root = _parser().parse(command.encode()).root_node
    if root.has_error or root.child_count != 1:
        raise NotPlain("something other than one simple command")
    (node,) = root.children
    if node.type != "command":
        raise NotPlain(f"shell syntax ({node.type.replace('_', ' ')})")
    name, *rest = node.children
    if name.type != "command_name" or name.child_count != 1:
        raise NotPlain("something before the program")
    return (_node_text(name.children[0]), *(_node_text(child) for child in rest))


@lru_cache(maxsize=512)
def _read(command: str) -> PlainCommand | str:
    try:
        words = _tokenize(command)
        # `[` is a program like any other, which the grammar reads as syntax of its own.
        if words[0] != "[" and _tree_words(command) != words:
            return "quoting that can be read in two ways"
    except NotPlain as error:
        return str(error)
    return PlainCommand(words)


def parse_plain(command: str) -> PlainCommand:
    """Read ``command`` as one program with plain words.

    Raises :class:`NotPlain`, whose message completes "the command contains …", for everything else: operators,
    newlines, substitutions, expansions, redirections, assignments, comments, brace expansions, invisible characters,
    and commands longer than 2,000 characters (Manual §8.5).
    """
    if len(command) > MAX_COMMAND_CHARS:
        raise NotPlain(f"{len(command)} characters, more than the {MAX_COMMAND_CHARS} that are judged")
    if "\n" in command or "\r" in command:
        raise NotPlain("more than one line")
    hidden = invisible_characters(command)
    if hidden:
        raise NotPlain(f"invisible characters ({', '.join(hidden[:5])})")
    result = _read(command)
    if isinstance(result, str):
        raise NotPlain(result)
    return result


def starts_with(words: Sequence[str], prefix: Sequence[str]) -> bool:
    """Whether ``words`` begin with all of ``prefix``, word for word."""
    return len(words) >= len(prefix) and tuple(words[: len(prefix)]) == tuple(prefix)
