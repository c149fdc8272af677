"""The whole engine in one call: the only file that knows all of its parts (Manual §6.1)."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from zq_notebook.agents.prompts import build_instructions
from zq_notebook.engine.approval import ApprovalOutcome
from zq_notebook.engine.hooks import EngineHook
from zq_notebook.engine.limits import CompactionOptions
from zq_notebook.engine.ports import ProviderClient
from zq_notebook.engine.turn import DEFAULT_MAX_ITERATIONS, TurnEngine
from zq_notebook.errors import SandboxUnavailableError, UsageError
from zq_notebook.permissions.decision import Mode, PermissionEngine
from zq_notebook.tools.files import register_file_tools
from zq_notebook.tools.interact import register_ask_tool, register_directory_tool, register_plan_tool
from zq_notebook.tools.registry import ToolRegistry
from zq_notebook.tools.search import register_search_tool
from zq_notebook.tools.shell import register_shell_tool

STATE_DIR = ".agent"
DEMO_MODEL = "demo"

_registered: dict[str, ProviderClient | Callable[[], ProviderClient]] = {}


def register_model(name: str, provider: ProviderClient | Callable[[], ProviderClient]) -> None:
    """Make a provider available under a model name, for ``%%agent -m NAME`` and :func:`create_default_engine`.

    Args:
        name: the model name that selects it.
        provider: the provider, or a function that makes one for each new engine.
    """
    _registered[name] = provider


def registration(model: str) -> object | None:
    """What :func:`register_model` was last given for this name, ``None`` if nothing."""
    return _registered.get(model)


def registered_models() -> list[str]:
    """The names given to :func:`register_model`, and the scripted demo."""
    return sorted({DEMO_MODEL, *_registered})


def provider_for(model: str, log_dir: str | Path | None = None) -> ProviderClient:
    """The provider that serves ``model``: a registered one, the scripted demo for ``demo``, else OpenAIProvider.

    Raises:
        UsageError: what was registered for ``model`` is no provider and makes none.
    """
    registered = _registered.get(model)
    if registered is not None:
        return _made(model, registered)
    if model == DEMO_MODEL:
        from zq_notebook.providers.demo import demo_provider

        return demo_provider()
    from zq_notebook.providers.openai import OpenAIProvider

    return OpenAIProvider(log_dir=log_dir)


def _made(model: str, registered: ProviderClient | Callable[[], ProviderClient]) -> ProviderClient:
    provider: Any = registered
    if isinstance(registered, type) or not hasattr(registered, "stream"):
        try:
            provider = registered() if callable(registered) else registered
        except Exception as error:
            raise UsageError(
                f"The provider for the model {model!r} could not be made ({type(error).__name__}: {error}). Correct "
                "what register_model(…) was given."
            ) from error
    if not callable(getattr(provider, "stream", None)):
        raise UsageError(
            f"What is registered for the model {model!r} has no stream(…), so it is no provider. Give register_model "
            "a provider, or a function that makes one."
        )
    client: ProviderClient = provider
    return client


def create_default_engine(
    *,
    workspace: str | Path,
    model: str | None = None,
    provider: ProviderClient | None = None,
    mode: Mode | str = Mode.INTERACTIVE,
    max_iterations: int = DEFAULT_MAX_ITERATIONS,
    reasoning_effort: str | None = None,
    allowed_commands: Sequence[str] = (),
    shell_policy: str = "approve",
    sandbox: Mapping[str, Any] | None = None,
    instructions: str | None = None,
    agent_type: str = "code",
    lang: str | None = None,
    messages: Sequence[Mapping[str, Any]] | None = None,
    hook: EngineHook | None = None,
    context_window: int | None = None,
    threshold_pct: float | None = None,
    soft_threshold_pct: float | None = None,
    cap_tokens: int | None = None,
    tool_result_dir: str | Path | None = None,
    log_dir: str | Path | None = None,
    default_approval: str = "error",
) -> TurnEngine:
    """An engine with the built-in tools, permissions and prompt (Manual §6.1).

    Args:
        workspace: root of everything the tools may write; the permission boundary.
        model: model identifier; by default OPENAI_MODEL. With neither, ``run()`` raises ModelNotSetError.
        provider: the model's client; by default the one that serves ``model`` (:func:`provider_for`).
        mode: ``discuss``, ``plan``, ``interactive`` or ``auto``.
        max_iterations: model requests per turn.
        reasoning_effort: ``low``, ``medium`` or ``high``; by default OPENAI_REASONING_EFFORT.
        allowed_commands: command prefixes that need no approval (Manual §8.5).
        shell_policy: ``approve``, ``sandbox``, ``workspace`` or ``all`` (Manual §8.4).
        sandbox: ``{"mode": "auto" | "off" | "required"}``.
        instructions: replaces the system prompt.
        agent_type: ``code``, ``cowork`` or ``analyst``: which system prompt.
        lang: language of the prompt and of what the engine tells the model; by default ZQ_LANG, else ``en``.
        messages: history to go on from.
        hook: told about every event.
        context_window: the model's window in tokens; by default CONTEXT_WINDOW, else looked up.
        threshold_pct: share of the window at which history is summarised; by default COMPACTION_THRESHOLD_PCT, else
            0.8.
        soft_threshold_pct: share of the window at which old tool results are dropped; by default
            COMPACTION_SOFT_THRESHOLD_PCT, else 75 % of the above.
        cap_tokens: absolute upper limit of the threshold in tokens; by default COMPACTION_CAP_TOKENS, else none.
        tool_result_dir: where results over budget go; by default TOOL_RESULT_DIR, else ``.agent/tool-results``.
        log_dir: where requests are logged; by default nowhere.
        default_approval: without an approver, ``error`` raises, ``deny`` and ``allow`` answer.

    Raises:
        SandboxUnavailableError: a sandbox is required; this version has none.
        UsageError: an option has a value it cannot have.
    """
    root = Path(workspace).expanduser().resolve()
    if not root.is_dir():
        raise UsageError(f"The workspace {root} is not a directory. Create it, or pass another workspace=….")
    _check_sandbox(sandbox)
    chosen_model = model or os.environ.get("OPENAI_MODEL", "")
    compaction = CompactionOptions.from_env(context_window, threshold_pct, soft_threshold_pct, cap_tokens)
    registry = ToolRegistry()
    register_default_tools(registry, root)
    result_dir = tool_result_dir or os.environ.get("TOOL_RESULT_DIR") or root / STATE_DIR / "tool-results"
    engine = TurnEngine(
        provider=provider or provider_for(chosen_model, log_dir),
        registry=registry,
        permissions=PermissionEngine(
            workspace_root=root, mode=mode, allowed_commands=tuple(allowed_commands), shell_policy=shell_policy
        ),
        model=chosen_model,
        instructions=instructions or build_instructions(agent_type, root, datetime.date.today().isoformat(), lang),
        lang=lang,
        max_iterations=max_iterations,
        reasoning_effort=reasoning_effort or os.environ.get("OPENAI_REASONING_EFFORT") or None,
        messages=messages,
        hook=hook,
        context_window=compaction.context_window,
        threshold_pct=compaction.threshold_pct,
        soft_threshold_pct=compaction.soft_threshold_pct,
        cap_tokens=compaction.cap_tokens,
        tool_result_dir=result_dir,
        window_of=_window_of,
    )
    _set_default_approval(engine, default_approval)
    return engine


def _window_of(model: str) -> int:
    from zq_notebook.providers.capabilities import context_window

    return context_window(model)


def register_default_tools(registry: ToolRegistry, workspace: Path) -> None:
    """The tools that need nothing but a workspace (Manual §7.1)."""
    register_file_tools(registry, workspace)
    register_shell_tool(registry, workspace)
    register_search_tool(registry, workspace)
    register_ask_tool(registry)
    register_plan_tool(registry)
    register_directory_tool(registry)


def _set_default_approval(engine: TurnEngine, default_approval: str) -> None:
    outcomes = {"deny": ApprovalOutcome.DENY, "allow": ApprovalOutcome.ONCE}
    if default_approval == "error":
        return
    if default_approval not in outcomes:
        raise UsageError(f"default_approval is 'error', 'deny' or 'allow', not {default_approval!r}.")
    outcome = outcomes[default_approval]
    engine.set_approver(lambda request: outcome)


def _check_sandbox(sandbox: Mapping[str, Any] | None) -> None:
    mode = (sandbox or {}).get("mode", "auto")
    if mode not in ("auto", "off", "required"):
        raise UsageError(f"The sandbox mode is 'auto', 'off' or 'required', not {mode!r}.")
    if mode == "required":
        raise SandboxUnavailableError(
            "A sandbox is required, but this version cannot put commands into one. Use mode 'auto' and approvals, "
            "or run the whole kernel inside a container."
        )
