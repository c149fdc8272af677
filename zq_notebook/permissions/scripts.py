"""sed and awk programs that only print: a closed world for two small languages."""

from __future__ import annotations

import re

_SED_ADDRESS_START = re.compile(r"[0-9$/\\+~]")
_SED_SIMPLE = frozenset("dDgGhHnNpPxz=")
_SED_BRACKET = re.compile(r"\[\^?(?:\[:[a-z]+:\]|[^\[\]\\])+\]")
_SED_LABELS = frozenset("btT:")


class _NotHarmless(ValueError):
    """The script is not one that is known to be harmless."""


class _SedReader:
    """Walks over a one-line sed script; anything but printing and editing the pattern space raises."""

    def __init__(self, script: str) -> None:
        self._text = script
        self._at = 0

    def run(self) -> None:
        while self._skip(" ;"):
            self._address()
            self._skip(" ")
            while self._peek() == "!":
                self._at += 1
                self._skip(" ")
            self._command()

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self, chars: str) -> bool:
        """Go past ``chars``; whether anything is left."""
        while self._peek() and self._peek() in chars:
            self._at += 1
        return self._at < len(self._text)

    def _delimited(self, delimiter: str, *, regex: bool) -> None:
        """Go past text that ends with ``delimiter``.

        Seds disagree on what a delimiter, a backslash or an early ``]`` means inside a bracket expression, so only
        the plainest ones are judged.
        """
        while (char := self._peek()) != delimiter:
            if not char:
                raise _NotHarmless("a part that never ends")
            if regex and char == "[":
                match = _SED_BRACKET.match(self._text, self._at)
                if match is None or delimiter in match.group():
                    raise _NotHarmless("a bracket expression that can be read in two ways")
                self._at = match.end()
            else:
                self._at += 2 if char == "\\" else 1
        self._at += 1

    def _address(self) -> None:
        while self._peek() and _SED_ADDRESS_START.match(self._peek()):
            char = self._peek()
            self._at += 1
            if char == "\\":
                delimiter = self._peek()
                self._at += 1
                self._delimited(self._checked(delimiter), regex=True)
                self._skip("IM")
            elif char == "/":
                self._delimited("/", regex=True)
                self._skip("IM")
            self._skip("0123456789 ")
            if self._peek() == ",":
                self._at += 1
                self._skip(" ")

    def _checked(self, delimiter: str) -> str:
        if not delimiter or delimiter.isalnum() or delimiter in "\\[]{}; ":
            raise _NotHarmless("an unusual delimiter")
        return delimiter

    def _command(self) -> None:
        command = self._peek()
        self._at += 1
        if command in ("", "{", "}"):
            return
        if command in _SED_SIMPLE:
            self._end()
        elif command in ("q", "Q", "l", "L"):
            self._skip(" 0123456789")
            self._end()
        elif command in _SED_LABELS:
            match = re.compile(r" *[A-Za-z0-9_]* *").match(self._text, self._at)
            self._at = match.end() if match else self._at
            self._end()
        elif command in ("s", "y"):
            delimiter = self._checked(self._peek())
            self._at += 1
            self._delimited(delimiter, regex=command == "s")
            self._delimited(delimiter, regex=False)
            if command == "s":
                self._skip("gpiI0123456789")
            self._end()
        else:
            raise _NotHarmless(f"the command {command}")

    def _end(self) -> None:
        """After a command only a separator may follow."""
        self._skip(" ")
        if self._peek() not in ("", ";", "}"):
            raise _NotHarmless("something unexpected after a command")


def sed_objection(script: str) -> str | None:
    """Why a sed script may do more than print, or ``None``."""
    try:
        _SedReader(script).run()
    except _NotHarmless as error:
        return f"a sed script with {error}"
    return None


def awk_objection(program: str) -> str | None:
    """Why an awk program may do more than print, or ``None``.

    Strings and regular expressions are not skipped, since the two cannot be told apart with certainty; so a mention
    counts as a use. ``>`` is a comparison before the first brace, and inside parentheses where nothing else is quoted.
    """
    if re.search(r"system|getline|@", program):
        return "an awk program that may run programs or read more files"
    if re.search(r"(?<!\|)\|(?!\|)", program) or "|||" in program:
        return "an awk program with a pipe"
    first_brace = program.find("{")
    for match in re.finditer(">(?!=)", program):
        if 0 <= first_brace < match.start() and not _is_comparison(program, match.start()):
            return "an awk program that may write a file"
    return None


def _is_comparison(program: str, at: int) -> bool:
    if re.search(r"[\"/\\#]|for", program):
        return False
    before = program[:at]
    return before.count("(") > before.count(")")
