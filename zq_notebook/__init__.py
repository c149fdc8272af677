"""zq_notebook: an AI agent that lives inside your Jupyter kernel.

In a notebook: ``%load_ext zq_notebook``, then a ``%%agent`` cell. In your own program: :func:`create_default_engine`.
Every public name is imported when it is first used, so that ``import zq_notebook`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__version__ = "0.1.0"

# Public name → the module it lives in. The names are stable, the modules may move.
_MODULES = {
    "zq_notebook.agents.prompts": ("build_env_block", "build_instructions"),
    "zq_notebook.agents.registry": ("BUILTIN_AGENTS", "AgentDef", "AgentRegistry"),
    "zq_notebook.assembly": ("create_default_engine", "provider_for", "register_model"),
    "zq_notebook.cancel": ("CancelToken",),
    "zq_notebook.engine.approval": ("ApprovalOutcome", "ApprovalReply", "Approver", "PermissionRequest"),
    "zq_notebook.engine.events": (
        "AskUserQuestion",
        "AssistantDelta",
        "AssistantMessage",
        "Compacted",
        "Compacting",
        "DirectoryRequested",
        "ErrorEvent",
        "Event",
        "EventType",
        "Interrupted",
        "IterationEnd",
        "LlmRequest",
        "LlmRetry",
        "PermissionRequired",
        "PlanProposed",
        "QueueSteering",
        "ReasoningDelta",
        "SessionNamed",
        "ToolFinished",
        "ToolProposed",
        "ToolStarted",
        "TurnEnd",
        "TurnStart",
    ),
    "zq_notebook.engine.hooks": ("CompositeHook", "EngineHook"),
    "zq_notebook.engine.messages": ("Message", "StreamChunk", "TokenUsage", "ToolCall"),
    "zq_notebook.engine.ports": ("ProviderClient", "StreamOptions"),
    "zq_notebook.engine.turn": ("DEFAULT_MAX_ITERATIONS", "TurnEngine"),
    "zq_notebook.errors": (
        "AgentError",
        "ApiKeyMissingError",
        "ApiStatusError",
        "ApproverMissingError",
        "AttachmentError",
        "ContextOverflowError",
        "EngineBusyError",
        "McpConfigError",
        "ModelNotSetError",
        "NetworkError",
        "ProviderError",
        "SandboxUnavailableError",
        "ScriptError",
        "StreamError",
        "ToolArgumentError",
        "ToolError",
        "UsageError",
    ),
    "zq_notebook.languages.catalog": ("PROMPT_LANGS", "PROMPT_SETS", "get_prompts"),
    "zq_notebook.notebook.ask": ("ask",),
    "zq_notebook.notebook.result": ("TurnError", "TurnResult"),
    "zq_notebook.permissions.decision": ("Decision", "Mode", "PermissionEngine", "RiskClass"),
    "zq_notebook.providers.openai": ("OpenAIProvider",),
    "zq_notebook.providers.scripted": ("ScriptedProvider", "Step"),
    "zq_notebook.toolio": ("ImageData", "ToolContext", "ToolOutput"),
    "zq_notebook.tools.files": ("register_file_tools", "register_read_only_file_tools"),
    "zq_notebook.tools.interact": (
        "register_ask_tool",
        "register_directory_tool",
        "register_plan_tool",
        "set_directory_handler",
        "set_plan_handler",
        "set_question_handler",
    ),
    "zq_notebook.tools.registry": ("ToolMetadata", "ToolRegistry", "ToolSpec"),
    "zq_notebook.tools.search": ("register_search_tool",),
    "zq_notebook.tools.shell": ("register_shell_tool",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["__version__", "load_ipython_extension", "unload_ipython_extension", *_HOME]


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module 'zq_notebook' has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOME))


def load_ipython_extension(shell: InteractiveShell) -> None:
    """``%load_ext zq_notebook``: adds ``%%agent`` and ``%agent``."""
    from zq_notebook.notebook.extension import load

    load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """``%unload_ext zq_notebook``: takes them off again."""
    from zq_notebook.notebook.extension import unload

    unload(shell)
