"""Which language, and the system prompt built from its texts (Manual §6.1, §20.1 "Prompts").

The texts are data: ``languages/<lang>.toml`` beside this file, read on first use. A prompt depends on nothing but its
arguments and the machine's kind, so that it stays byte-identical from one request to the next within a day.
"""

from __future__ import annotations

import os
import platform
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources

import msgspec

from zq_notebook.agents.tables import PromptSet
from zq_notebook.agents.words import UiWords
from zq_notebook.errors import UsageError

PROMPT_LANGS: tuple[str, ...] = ("zh", "en", "zh-TW", "ja", "ko", "es")
DEFAULT_LANG = "en"


def resolve_lang(option: str | None = None) -> str:
    """The language to use: ``option``, else the variable ``ZQ_LANG``, else ``en``.

    Case and ``_`` for ``-`` do not matter. Returns one of :data:`PROMPT_LANGS`; raises :class:`UsageError` for any
    other language.
    """
    source = "lang" if option else "ZQ_LANG"
    wanted = (option or os.environ.get("ZQ_LANG") or "").strip() or DEFAULT_LANG
    for lang in PROMPT_LANGS:
        if lang.lower() == wanted.lower().replace("_", "-"):
            return lang
    raise UsageError(f"There is no language {wanted!r}. Set {source} to one of {', '.join(PROMPT_LANGS)}.")


@cache
def _load(lang: str) -> PromptSet:
    import tomllib  # needed only here, and only once a turn or a card is due

    source = resources.files(__package__).joinpath("languages", f"{lang}.toml")
    return msgspec.convert(tomllib.loads(source.read_text(encoding="utf-8")), PromptSet)


def get_prompts(lang: str | None = None) -> PromptSet:
    """All texts of a language (see :func:`resolve_lang`), read once per process."""
    return _load(resolve_lang(lang))


def get_ui(lang: str | None = None) -> UiWords:
    """The notebook's buttons and messages in a language (see :func:`resolve_lang`)."""
    return get_prompts(lang).ui


class _PromptSets(Mapping[str, PromptSet]):
    """Language → texts, each language read when it is asked for."""

    def __getitem__(self, lang: str) -> PromptSet:
        if lang not in PROMPT_LANGS:
            raise KeyError(lang)
        return _load(lang)

    def __iter__(self) -> Iterator[str]:
        return iter(PROMPT_LANGS)

    def __len__(self) -> int:
        return len(PROMPT_LANGS)


PROMPT_SETS: Mapping[str, PromptSet] = _PromptSets()


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
