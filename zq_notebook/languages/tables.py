"""The shape of a language file: every text the model and the user read, by name.

A file ``<lang>.toml`` beside this one has exactly these keys. ``{names}`` in a text are filled with ``str.format``.
"""

from __future__ import annotations

import msgspec

from zq_notebook.languages.words import UiWords


class RoleText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A built-in role: one line for people, and its part of the system prompt."""

    description: str
    prompt: str


class SectionTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parts of the system prompt that all roles share."""

    working_rules: str
    untrusted_data: str
    notebook: str
    environment: str  # {workspace} {today} {system}


class SessionTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``naming`` is the instruction that precedes the message to be named."""

    naming: str


class CompactionTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Making room: the instruction for the summary, and what stands in the place of removed content."""

    prompt: str
    summary_intro: str
    elided_result: str  # {tool}
    repeated_read: str  # {path}
    images_removed: str  # {count}


class NoticeTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the engine tells the model between steps; ``finalize`` is the instruction at the iteration limit."""

    finalize: str  # {limit}


class ResultTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the model reads in place of a tool's own result."""

    denied_by_user: str
    denied_by_user_reason: str  # {reason}
    denied_by_permissions: str  # {reason}
    approval_failed: str
    interrupted: str
    not_started: str
    missing: str


class PromptSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything in one language. ``roles`` maps ``code``, ``cowork`` and ``analyst``."""

    roles: dict[str, RoleText]
    sections: SectionTexts
    session: SessionTexts
    compaction: CompactionTexts
    notices: NoticeTexts
    results: ResultTexts
    ui: UiWords
