"""Keep keys out of whatever is shown, saved or logged.

A :class:`Redactor` knows three kinds of secret: values registered with :meth:`Redactor.add`, values of environment
variables whose names look secret, and texts in the shape of a well-known kind of key. It replaces each by
``[redacted]``. Short and commonplace values are left alone: masking every ``EMPTY`` or ``true`` would hide nothing
and make text unreadable.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote

MASK = "[redacted]"
MIN_LENGTH = 8  # characters; a shorter value is never taken for a secret

# Anywhere in a name (PGPASSWORD); or as one of the words between its underscores, perhaps numbered (API_KEYS_PROD).
_SECRET_NAME = re.compile(
    r"SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL"
    r"|(?:(?:^|_|API|ACCESS|AUTH|MASTER|PRIVATE|SSH)KEYS?|TOKEN|(?:^|_)(?<!MAX_)(?<!CAP_)TOKENS|(?:^|_)PAT|_PWD)"
    r"\d*(?:_|$)|(?:_|SSH)PASS$"
)
_COMMONPLACE = frozenset(
    {"changeme", "disabled", "no-key-needed", "no-key-required", "not-needed", "not-required", "password"}
    | {"placeholder", "redacted", "sk-no-key-required", "undefined", "your-api-key"}
)

# One entry per kind: a text that occurs in every key of the kind (looked for first, as that is fast), and its pattern.
# Where a pattern has a group named "keep", that part stays.
_SHAPES: tuple[tuple[str, str], ...] = (
    ("sk-", r"(?<![A-Za-z0-9_-])sk-(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{16,}"),
    ("gh", r"(?<![A-Za-z0-9_])gh[pousr]_[A-Za-z0-9]{20,}"),
    ("github_pat_", r"(?<![A-Za-z0-9_])github_pat_[A-Za-z0-9_]{20,}"),
    ("glpat-", r"(?<![A-Za-z0-9_-])glpat-[A-Za-z0-9_-]{16,}"),
    ("xox", r"(?<![A-Za-z0-9])xox[abeprs]-[A-Za-z0-9-]{10,}"),
    ("AKIA", r"(?<![A-Za-z0-9])AKIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("ASIA", r"(?<![A-Za-z0-9])ASIA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("AIza", r"(?<![A-Za-z0-9_-])AIza[A-Za-z0-9_-]{35}"),
    ("hf_", r"(?<![A-Za-z0-9_])hf_(?=[A-Za-z]*\d)[A-Za-z0-9]{30,}"),
    ("eyJ", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("earer", r"(?P<keep>\b[Bb]earer[ \t]+)(?=[A-Za-z._~+/=-]*\d)[A-Za-z0-9._~+/=-]{16,}"),
    ("EARER", r"(?P<keep>\bBEARER[ \t]+)(?=[A-Za-z._~+/=-]*\d)[A-Za-z0-9._~+/=-]{16,}"),
    ("PRIVATE KEY-----", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]+?-----END [A-Z ]*PRIVATE KEY-----"),
    ("://", r"(?P<keep>://[^/\s:@\[\]]{0,200}:)[^/\s@\[\]]{8,200}(?=@)"),
)
_STARTS = (
    *("sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "AKIA", "ASIA", "AIza", "hf_", "eyJ"),
    *("xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-"),
    "://",
)


@lru_cache(maxsize=1)
def _shapes() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((marker, re.compile(pattern)) for marker, pattern in _SHAPES)


@lru_cache(maxsize=1)
def _open_shape() -> re.Pattern[str]:
    """The end of a text that may grow into a shape: a start with what follows it, or the beginning of a start."""
    starts = "|".join(map(re.escape, _STARTS))
    begun = {start[:size] for start in (*_STARTS, "bearer", "Bearer", "BEARER") for size in range(1, len(start))}
    return re.compile(
        "|".join(
            [
                r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?!-----END)[\s\S])*(?:-----END[A-Z -]*)?\Z",
                r"-----B[A-Z ]*-{0,5}\Z|-{1,5}\Z",
                r"(?:\b[Bb]earer|\bBEARER)(?:[ \t]+\S*)?\Z",
                rf"(?:{starts})\S*\Z",
                rf"(?<![A-Za-z0-9])(?:{'|'.join(sorted(map(re.escape, begun)))})\Z",
            ]
        )
    )


class Redactor:
    """Replaces secrets in text by ``[redacted]``; may be used from several threads.

    environ: the environment whose secret-looking values are masked too; the process's own unless given. It is looked
        at on every call, so that a key set later is known as well.
    """

    def __init__(self, secrets: Iterable[str] = (), *, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self._lock = threading.Lock()
        self._added: frozenset[str] = frozenset()
        self._seen: tuple[str, ...] | None = None
        self._values: tuple[str, ...] = ()  # every form of every secret, longest first
        for secret in secrets:
            self.add(secret)

    def add(self, value: str | None) -> bool:
        """Mask ``value`` from now on. False, and nothing happens, for what is too short or too common to be a key."""
        value = (value or "").strip()
        if not _worth_masking(value):
            return False
        with self._lock:
            self._added |= {value}
            self._seen = None
        return True

    def redact(self, text: str) -> str:
        """``text`` with every known secret, and every text shaped like a key, replaced by ``[redacted]``."""
        values = self._current_values()
        for _ in range(3):  # a replacement may, in theory, complete another secret
            found = [value for value in values if value in text]
            if not found:
                break
            text = re.sub("|".join(map(re.escape, found)), MASK, text)
        for marker, pattern in _shapes():
            if marker in text:
                text = pattern.sub(_masked, text)
        return text

    def redact_data(self, data: Any) -> Any:
        """A copy of JSON-like ``data``, its texts (keys of mappings too) redacted; other objects stay as they are."""
        if isinstance(data, str):
            return self.redact(data)
        if isinstance(data, Mapping):
            return {self.redact_data(key): self.redact_data(value) for key, value in data.items()}
        if isinstance(data, (list, tuple)):
            return [self.redact_data(value) for value in data]
        return data

    def undecided(self, text: str) -> int:
        """How many characters at the end of ``text`` may belong to a secret that is not complete yet."""
        open_shape = _open_shape().search(text)
        keep = len(text) - open_shape.start() if open_shape else 0
        for value in self._current_values():
            for size in range(min(len(value) - 1, len(text)), keep, -1):
                if text.endswith(value[:size]) and (size > 2 or not text[-size - 1 : -size].isalnum()):
                    keep = size
                    break
        return keep

    def _current_values(self) -> tuple[str, ...]:
        secret = tuple(value for name, value in list(self._environ.items()) if is_secret_name(name))
        with self._lock:
            if secret != self._seen:
                from_environment = {value.strip() for value in secret if _is_secret_value(value.strip())}
                forms = {form for value in self._added | from_environment for form in _forms(value)}
                self._values = tuple(sorted(forms, key=lambda form: (-len(form), form)))
                self._seen = secret
            return self._values


class StreamRedactor:
    """Redacts a text that arrives in pieces, where a key may be cut anywhere.

    What could be the beginning of a secret is held back until the next piece, or :meth:`flush`, decides.
    """

    _LONGEST = 8192  # characters held back at most

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def feed(self, piece: str) -> str:
        """The part of what came so far that can be shown now, redacted; it may be empty."""
        text = self._held + piece
        undecided = min(self._redactor.undecided(text), self._LONGEST)
        shown, self._held = text[: len(text) - undecided], text[len(text) - undecided :]
        return self._redactor.redact(shown)

    def flush(self) -> str:
        """What was held back, redacted; to be called at the end of the text."""
        text, self._held = self._held, ""
        return self._redactor.redact(text)


class RedactingFilter(logging.Filter):
    """Masks secrets in log records: message, arguments, traceback and stack."""

    def __init__(self, redactor: Redactor | None = None) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite ``record``; always true, as no record is dropped."""
        redactor = self._redactor or shared()
        record.msg, record.args = redactor.redact(record.getMessage()), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = redactor.redact(record.exc_text)  # formatters use this text instead of the exception
        if record.stack_info:
            record.stack_info = redactor.redact(record.stack_info)
        return True


_guard = RedactingFilter()


def guard_loggers(names: Iterable[str]) -> None:
    """Mask secrets in what is logged by the loggers of these names (a filter does not cover a logger's children)."""
    for name in names:
        logging.getLogger(name).addFilter(_guard)  # adding it again changes nothing


@lru_cache(maxsize=1)
def shared() -> Redactor:
    """The redactor of this process: every key that a provider is given is registered here."""
    return Redactor()


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether an environment variable of this name is likely to hold a secret. What it holds may still tell otherwise.

    This is the one rule for what is masked in texts and for what commands do not find in their environment.
    """
    return bool(_SECRET_NAME.search(name.upper()))


def _worth_masking(value: str) -> bool:
    common = value.lower() in _COMMONPLACE or value in MASK or MASK in value
    return len(value) >= MIN_LENGTH and len(set(value)) > 2 and not common


def _is_secret_value(value: str) -> bool:
    """Values of the environment get more doubt than registered ones: many are paths, numbers or addresses."""
    if value.startswith(("/", "~", "./", "http://", "https://")) or value.replace(".", "").isdigit():
        return False
    return _worth_masking(value)


def _forms(value: str) -> set[str]:
    """``value`` as it may stand in text: as it is, inside a JSON string, inside a URL."""
    in_json = {json.dumps(value, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)}
    return {value, quote(value, safe="")} | in_json


def _masked(match: re.Match[str]) -> str:
    keep = match.groupdict().get("keep") or ""
    return keep + MASK
