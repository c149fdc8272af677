"""What kind of thing a tool call does, read from the tool's metadata (Manual §8.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

WRITE_CAPABILITIES = frozenset({"write", "file_write", "write_file", "edit", "delete", "file_delete"})
WRITE_CATEGORIES = frozenset({"file", "patch"})
_ABSENT = object()


class RiskClass(StrEnum):
    """How far a call reaches: it looks, it changes files, it runs a program, or it acts on something outside."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    EXTERNAL = "external"


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.title() for part in tail)


def metadata_field(metadata: object, name: str, default: object = None) -> object:
    """Field ``name`` (snake_case) of a tool's metadata, given as an object or as a mapping in either spelling."""
    if isinstance(metadata, Mapping):
        value = metadata.get(name, metadata.get(_camel(name), _ABSENT))
    else:
        value = getattr(metadata, name, _ABSENT)
    return default if value is _ABSENT or value is None else value


def category(metadata: object) -> str:
    """The tool's category in lower case, empty when it has none."""
    return str(metadata_field(metadata, "category", "")).lower()


def approval_waived(metadata: object) -> bool:
    """Whether the tool's author said in so many words that no approval is needed."""
    return metadata_field(metadata, "requires_approval", _ABSENT) is False


def _capabilities(metadata: object) -> frozenset[str]:
    value = metadata_field(metadata, "capabilities", ())
    if isinstance(value, str):
        return frozenset({value.lower()})
    return frozenset(str(item).lower() for item in value) if isinstance(value, Iterable) else frozenset()


def classify(metadata: object) -> RiskClass:
    """The risk class of a tool.

    An explicit ``risk_class`` wins. Otherwise low risk without approval is READ, the shell EXECUTE, what can write
    files WRITE, and everything else, a tool without metadata included, EXTERNAL.
    """
    if metadata is None:
        return RiskClass.EXTERNAL
    explicit = metadata_field(metadata, "risk_class")
    if explicit is not None:
        try:
            return RiskClass(str(explicit).lower())
        except ValueError:
            return RiskClass.EXTERNAL
    if str(metadata_field(metadata, "risk_level", "high")).lower() == "low" and approval_waived(metadata):
        return RiskClass.READ
    kind = category(metadata)
    if kind == "shell":
        return RiskClass.EXECUTE
    capabilities = _capabilities(metadata)
    if capabilities & WRITE_CAPABILITIES or (kind in WRITE_CATEGORIES and capabilities != {"read"}):
        return RiskClass.WRITE
    return RiskClass.EXTERNAL
