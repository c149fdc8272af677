"""What a docstring says about a function and its parameters: Google, NumPy and Sphinx styles."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(
    r"(args|arguments|parameters|params|keyword args|keyword arguments|other parameters|returns?|yields?|raises?|"
    r"examples?|notes?|see also|references|warnings?|attributes)\s*:?",
    re.IGNORECASE,
)
_PARAMETER_SECTIONS = ("args", "arguments", "param", "keyword", "other")
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_NUMPY_ITEM = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_SPHINX_ITEM = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*?\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_SPHINX_FIELD = re.compile(r":\w+[^:]*:")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(part for line in lines if (part := line.strip()))


def _heading(lines: list[str], i: int) -> tuple[str, bool] | None:
    """The section that starts at line ``i`` in lower case, and whether it is underlined (NumPy)."""
    line = lines[i]
    if line != line.lstrip() or not _SECTION.fullmatch(line.strip()):
        return None
    underlined = i + 1 < len(lines) and re.fullmatch(r"[-=~]{3,}", lines[i + 1].strip()) is not None
    if underlined or line.rstrip().endswith(":"):
        return line.strip().rstrip(":").lower(), underlined
    return None


def _items(block: list[str], *, numpy: bool) -> dict[str, str]:
    """Parameters of one section: lines at the first indentation begin an item, deeper ones continue it."""
    found: dict[str, str] = {}
    filled = [line for line in block if line.strip()]
    if not filled:
        return found
    base = _indent(filled[0])
    names: list[str] = []
    text: list[str] = []
    for line in [*filled, ""]:
        if line and _indent(line) > base:
            text.append(line)
            continue
        for name in names:
            found[name] = _joined(text)
        names, text = [], []
        match = (_NUMPY_ITEM if numpy else _GOOGLE_ITEM).fullmatch(line.strip()) if line else None
        if match:
            names = [name.strip().lstrip("*") for name in match.group(1).split(",")]
            text = [] if numpy else [match.group(2)]
    return found


def parse_docstring(doc: str | None) -> tuple[str, dict[str, str]]:
    """The description (everything before the first section) and the text of each parameter by name."""
    lines = inspect.cleandoc(doc or "").splitlines()
    description: list[str] = []
    parameters: dict[str, str] = {}
    i, in_description = 0, True
    while i < len(lines):
        heading = _heading(lines, i)
        if heading is not None:
            name, underlined = heading
            start = i + (2 if underlined else 1)
            i = start
            while i < len(lines) and _heading(lines, i) is None and (underlined or not lines[i] or lines[i][0] == " "):
                i += 1
            in_description = False
            if name.startswith(_PARAMETER_SECTIONS):
                parameters.update(_items(lines[start:i], numpy=underlined))
            continue
        sphinx = _SPHINX_ITEM.fullmatch(lines[i].strip())
        if sphinx or _SPHINX_FIELD.match(lines[i]):
            in_description = False
        if sphinx:
            text = [sphinx.group(2)]
            while i + 1 < len(lines) and _indent(lines[i + 1]) > 0 and not _SPHINX_FIELD.match(lines[i + 1].strip()):
                i += 1
                text.append(lines[i])
            parameters[sphinx.group(1)] = _joined(text)
        elif in_description:
            description.append(lines[i])
        i += 1
    return "\n".join(description).strip(), parameters
