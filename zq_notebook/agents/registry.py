"""The table of roles: name, description, system prompt, optional model (Manual §16.2)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from zq_notebook.agents.prompts import compose_instructions
from zq_notebook.errors import UsageError
from zq_notebook.languages.catalog import DEFAULT_LANG, get_prompts, resolve_lang

BUILTIN_NAMES = ("code", "cowork", "analyst")
DEFAULT_AGENT = "code"
MAX_NAME_CHARS = 64


class AgentDef(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One role. ``model`` is the model to use with it; ``None`` leaves the choice to the session."""

    name: str
    description: str = ""
    prompt: str = ""
    model: str | None = None


class _BuiltinAgents(Mapping[str, AgentDef]):
    """The built-in roles by name, in English; read when they are asked for."""

    def __getitem__(self, name: str) -> AgentDef:
        if name not in BUILTIN_NAMES:
            raise KeyError(name)
        return _builtin(name, DEFAULT_LANG)

    def __iter__(self) -> Iterator[str]:
        return iter(BUILTIN_NAMES)

    def __len__(self) -> int:
        return len(BUILTIN_NAMES)


BUILTIN_AGENTS: Mapping[str, AgentDef] = _BuiltinAgents()


def _builtin(name: str, lang: str | None) -> AgentDef:
    text = get_prompts(lang).roles[name]
    return AgentDef(name=name, description=text.description, prompt=text.prompt.strip())


class AgentRegistry:
    """Roles in memory (Manual §16.2). Keeping them on disk is the caller's business.

    Starts with ``code``, ``cowork`` and ``analyst``, and ``code`` as the current role. A built-in role speaks the
    language asked for as long as its text was not replaced.
    """

    def __init__(self) -> None:
        self._agents: dict[str, AgentDef] = dict(BUILTIN_AGENTS)
        self._current = DEFAULT_AGENT

    @property
    def current(self) -> str:
        """The name of the current role."""
        return self._current

    @property
    def current_def(self) -> AgentDef:
        """The current role."""
        return self._agents[self._current]

    def names(self) -> tuple[str, ...]:
        """All names: the built-in ones, then the others in the order they were added."""
        return tuple(self._agents)

    def list(self, lang: str | None = None) -> tuple[AgentDef, ...]:
        """All roles, in the order of :meth:`names`; ``lang`` as in :meth:`get`."""
        return tuple(self.get(name, lang) for name in self._agents)

    def get(self, name: str, lang: str | None = None) -> AgentDef:
        """The role called ``name``. With ``lang``, what is still built in about it comes in that language.

        Raises :class:`UsageError`, naming the known roles, when there is none.
        """
        agent = self._agents.get(name)
        if agent is None:
            raise UsageError(self._unknown(name))
        if lang is None or name not in BUILTIN_AGENTS:
            return agent
        english, local = BUILTIN_AGENTS[name], _builtin(name, lang)
        return msgspec.structs.replace(
            agent,
            description=local.description if agent.description == english.description else agent.description,
            prompt=local.prompt if agent.prompt == english.prompt else agent.prompt,
        )

    def add(self, agent: AgentDef | Mapping[str, Any]) -> AgentDef:
        """Add a role, or replace the one of that name; a mapping has the fields of :class:`AgentDef`.

        Replacing lets a notebook cell that adds a role be run twice. Raises :class:`UsageError` for unknown fields,
        wrong types, an unusable name or an empty prompt.
        """
        checked = _checked(agent)
        self._agents[checked.name] = checked
        return checked

    def update(self, name: str, changes: Mapping[str, Any] | None = None, /, **fields: Any) -> AgentDef:
        """Change some fields of a role: ``update("analyst", {"model": "m"})`` or ``update("analyst", model="m")``.

        A name cannot be changed. Raises :class:`UsageError` as :meth:`get` and :meth:`add` do; then nothing changed.
        """
        old = self.get(name)
        wanted = {**msgspec.structs.asdict(old), **(changes or {}), **fields}
        if wanted["name"] != name:
            raise UsageError(f"The role {name!r} cannot be renamed. Add a role called {wanted['name']!r} instead.")
        return self.add(wanted)

    def remove(self, name: str) -> None:
        """Remove a role; a built-in one that was changed becomes as it was.

        When the current role goes, ``code`` becomes current. Raises :class:`UsageError` for an unknown role and for a
        built-in one that was not changed.
        """
        if self.get(name) == BUILTIN_AGENTS.get(name):
            raise UsageError(f"The role {name!r} is built in and cannot be removed. Change it with update().")
        if name in BUILTIN_AGENTS:
            self._agents[name] = BUILTIN_AGENTS[name]
            return
        del self._agents[name]
        if self._current == name:
            self._current = DEFAULT_AGENT

    def switch(self, name: str) -> AgentDef:
        """Make a role the current one and return it. Raises :class:`UsageError` when there is none of that name."""
        agent = self.get(name)
        self._current = name
        return agent

    def build_system_prompt(
        self,
        name: str,
        workspace: str | os.PathLike[str],
        today: str,
        lang: str | None = None,
        *,
        kernel: bool = False,
        system: str | None = None,
    ) -> str:
        """The whole system prompt of a role, for ``engine.set_system_prompt``.

        Arguments as in :func:`~zq_notebook.agents.prompts.build_instructions`; the role's own prompt is followed by
        the rules that hold for every role. Raises :class:`UsageError` for an unknown role or language.
        """
        chosen = resolve_lang(lang)
        prompt = self.get(name, chosen).prompt
        return compose_instructions(prompt, workspace, today, chosen, kernel=kernel, system=system)

    def _unknown(self, name: str) -> str:
        from difflib import get_close_matches

        close = get_close_matches(str(name).lower(), self._agents, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        return f"There is no role {name!r}.{hint} The roles are: {', '.join(self._agents)}."


def _checked(agent: AgentDef | Mapping[str, Any]) -> AgentDef:
    """``agent`` as a definition that can be used, or :class:`UsageError`."""
    fields = msgspec.structs.asdict(agent) if isinstance(agent, AgentDef) else agent
    try:
        checked = msgspec.convert(dict(fields), AgentDef)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise UsageError(
            f"This is not a role: {error}. A role has a name, a description, a prompt and, if you like, a model."
        ) from error
    name = checked.name
    if not name or len(name) > MAX_NAME_CHARS or name.startswith("-") or not name.isprintable() or " " in name:
        raise UsageError(
            f"A role cannot be called {name!r}. Use 1 to {MAX_NAME_CHARS} characters without spaces, "
            "not starting with a dash."
        )
    if not checked.prompt.strip():
        raise UsageError(f"The role {name!r} needs a prompt that says who the agent is and how it works.")
    return checked
