"""The table of roles."""

from __future__ import annotations

import pytest

from zq_notebook.agents.prompts import build_instructions
from zq_notebook.agents.registry import BUILTIN_AGENTS, AgentDef, AgentRegistry
from zq_notebook.errors import UsageError
from zq_notebook.languages.catalog import PROMPT_LANGS, get_prompts

DAY = "2031-05-04"
POET = {"name": "poet", "description": "Verse", "prompt": "You write verse about {things}."}


def test_three_roles_are_built_in_and_code_is_current() -> None:
    agents = AgentRegistry()
    assert agents.names() == tuple(BUILTIN_AGENTS) == ("code", "cowork", "analyst")
    assert agents.current == "code"
    assert agents.current_def == BUILTIN_AGENTS["code"]
    assert len(BUILTIN_AGENTS) == 3
    assert all(agent.description and agent.prompt and agent.model is None for agent in agents.list())


def test_the_steps_of_the_manual_work_from_add_to_switch() -> None:
    agents = AgentRegistry()
    agents.add({"name": "analyst", "description": "Data analysis", "prompt": "You are a data analyst."})
    agents.update("analyst", {"model": "some-model"})
    agents.switch("analyst")
    prompt = agents.build_system_prompt("analyst", "/w", DAY, "zh")
    assert agents.current == "analyst"
    assert agents.current_def.model == "some-model"
    assert prompt.startswith("You are a data analyst.\n\n")
    assert get_prompts("zh").sections.untrusted_data.strip() in prompt


@pytest.mark.parametrize("lang", PROMPT_LANGS)
@pytest.mark.parametrize("role", ["code", "cowork", "analyst"])
def test_a_built_in_role_speaks_the_language_asked_for(role: str, lang: str) -> None:
    agents = AgentRegistry()
    prompt = agents.build_system_prompt(role, "/w", DAY, lang, kernel=True)
    assert prompt == build_instructions(role, "/w", DAY, lang, kernel=True)
    assert agents.get(role, lang).description == get_prompts(lang).roles[role].description


def test_a_role_with_another_model_still_speaks_the_language_asked_for() -> None:
    agents = AgentRegistry()
    agents.update("code", model="m", description="Mine")
    local = agents.get("code", "es")
    assert (local.model, local.description) == ("m", "Mine")
    assert local.prompt == get_prompts("es").roles["code"].prompt.strip()


def test_the_language_of_the_environment_counts_for_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZQ_LANG", "ko")
    prompt = AgentRegistry().build_system_prompt("code", "/w", DAY)
    assert prompt == build_instructions("code", "/w", DAY, "ko")


def test_a_mapping_and_a_struct_are_the_same_role() -> None:
    one, other = AgentRegistry(), AgentRegistry()
    assert one.add(POET) == other.add(AgentDef(**POET)) == one.get("poet")
    assert one.names()[-1] == "poet"
    assert one.list("ja")[-1] == AgentDef(**POET)


def test_adding_a_role_twice_replaces_it() -> None:
    agents = AgentRegistry()
    agents.add(POET)
    agents.add({**POET, "prompt": "Haiku only."})
    assert agents.get("poet").prompt == "Haiku only."
    assert agents.names().count("poet") == 1


def test_registries_do_not_share_roles() -> None:
    AgentRegistry().add(POET)
    assert "poet" not in AgentRegistry().names()


def test_an_update_can_clear_the_model_but_not_change_the_name() -> None:
    agents = AgentRegistry()
    agents.add({**POET, "model": "m"})
    assert agents.update("poet", model=None).model is None
    with pytest.raises(UsageError, match="cannot be renamed"):
        agents.update("poet", {"name": "bard"})
    assert agents.names()[-1] == "poet"


def test_a_refused_update_changes_nothing() -> None:
    agents = AgentRegistry()
    for bad in ({"prompt": "  "}, {"model": 3}, {"colour": "red"}):
        with pytest.raises(UsageError):
            agents.update("code", bad)
    assert agents.get("code") == BUILTIN_AGENTS["code"]


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"prompt": "x"}, "name"),
        ({"name": 7, "prompt": "x"}, "name"),
        ({"name": "poet", "prompt": ""}, "needs a prompt"),
        ({"name": "poet"}, "needs a prompt"),
        ({"name": "two words", "prompt": "x"}, "without spaces"),
        ({"name": "", "prompt": "x"}, "without spaces"),
        ({"name": "-r", "prompt": "x"}, "dash"),
        ({"name": "a\nb", "prompt": "x"}, "without spaces"),
        ({"name": "x" * 65, "prompt": "x"}, "64"),
        ({**POET, "tool": "all"}, "tool"),
        (7, "description"),
    ],
)
def test_an_unusable_role_is_refused_with_what_is_wrong(bad: object, says: str) -> None:
    agents = AgentRegistry()
    with pytest.raises(UsageError, match=says):
        agents.add(bad)  # type: ignore[arg-type]
    assert agents.names() == ("code", "cowork", "analyst")


def test_a_role_may_be_named_in_any_script() -> None:
    agents = AgentRegistry()
    agents.add({**POET, "name": "诗人"})
    assert agents.switch("诗人").name == agents.current == "诗人"


def test_an_unknown_role_is_refused_with_a_suggestion_and_the_known_ones() -> None:
    agents = AgentRegistry()
    calls = (agents.get, agents.switch, agents.remove, agents.update)
    for call in calls:
        with pytest.raises(UsageError, match=r"'Analist'\. Did you mean 'analyst'\? .*code, cowork, analyst"):
            call("Analist")
    with pytest.raises(UsageError, match=r"no role 'zzz'\. The roles are"):
        agents.build_system_prompt("zzz", "/w", DAY)
    assert agents.current == "code"


def test_removing_the_current_role_makes_code_current() -> None:
    agents = AgentRegistry()
    agents.add(POET)
    agents.switch("poet")
    agents.remove("poet")
    assert agents.current == "code"
    assert "poet" not in agents.names()


def test_removing_a_changed_built_in_role_restores_it() -> None:
    agents = AgentRegistry()
    agents.update("analyst", prompt="Guess.")
    agents.switch("analyst")
    agents.remove("analyst")
    assert agents.current_def == BUILTIN_AGENTS["analyst"]
    with pytest.raises(UsageError, match="built in"):
        agents.remove("analyst")
