"""The system prompt, built from the texts of a language (Manual §6.1, §20.1 "Prompts").

A prompt depends on nothing but its arguments and the machine's kind, so that it stays byte-identical from one request
to the next within a day.
"""

from __future__ import annotations

import os
import platform
import unicodedata

from zq_notebook.errors import UsageError
from zq_notebook.languages.catalog import get_prompts


def build_instructions(
    agent_type: str,
    workspace: str | os.PathLike[str],
    today: str,
    lang: str | None = None,
    *,
    kernel: bool = False,
    system: str | None = None,
) -> str:
    """The default system prompt of a built-in role (Manual §6.1).

    ``agent_type`` is ``code``, ``cowork`` or ``analyst``, ``today`` a date such as ``2031-05-04`` (give no time of
    day: it would change the prompt with every request). ``kernel`` adds what holds inside a Jupyter kernel,
    ``system`` replaces the description of this machine. Raises :class:`UsageError` for an unknown role or language.
    """
    roles = get_prompts(lang).roles
    if agent_type not in roles:
        raise UsageError(
            f"There is no built-in role {agent_type!r}. The built-in roles are {', '.join(roles)}; "
            "for a role of your own, add it to an AgentRegistry."
        )
    return compose_instructions(roles[agent_type].prompt, workspace, today, lang, kernel=kernel, system=system)


def compose_instructions(
    role_prompt: str,
    workspace: str | os.PathLike[str],
    today: str,
    lang: str | None = None,
    *,
    kernel: bool = False,
    system: str | None = None,
) -> str:
    """A system prompt for any role: its own prompt, taken as it is, then the rules that hold for every role."""
    sections = get_prompts(lang).sections
    parts = [role_prompt, sections.working_rules]
    if kernel:
        parts.append(sections.notebook)
    parts += [sections.untrusted_data, build_env_block(workspace, today, lang, kernel=kernel, system=system)]
    return "\n\n".join(part.strip() for part in parts)


def build_env_block(
    workspace: str | os.PathLike[str],
    today: str,
    lang: str | None = None,
    *,
    kernel: bool = False,
    system: str | None = None,
) -> str:
    """The block that says where and when the agent works (Manual §20.1). Arguments as in :func:`build_instructions`."""
    return (
        get_prompts(lang)
        .sections.environment.format(
            workspace=_one_line(os.fspath(workspace)),
            today=_one_line(today),
            system=_one_line(system or describe_system(kernel=kernel)),
        )
        .strip()
    )


def describe_system(*, kernel: bool = False) -> str:
    """This machine's operating system and, in a kernel, its Python: ``Linux, Python 3.11``."""
    name = {"Darwin": "macOS"}.get(platform.system(), platform.system() or "unknown")
    if not kernel:
        return name
    major, minor, _ = platform.python_version_tuple()
    return f"{name}, Python {major}.{minor}"


def _one_line(value: str) -> str:
    # A directory may have any name; one with a line break must not be able to add lines to the instructions.
    breaking = {"Cc", "Cs", "Zl", "Zp"}
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in breaking else c for c in value)
