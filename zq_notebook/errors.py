"""Every exception that zq_notebook raises on purpose.

    AgentError
    ├── UsageError                 a magic, flag or argument that cannot be carried out as written
    ├── ModelNotSetError           no model was given and OPENAI_MODEL is empty
    ├── ApproverMissingError       approval was needed and nobody can be asked
    ├── EngineBusyError            a second turn on an engine whose turn is still running
    ├── AttachmentError            an attachment is missing, too big or of an unusable type
    ├── SandboxUnavailableError    a sandbox was required and this machine has none
    ├── McpConfigError             an MCP configuration file cannot be used
    ├── ToolArgumentError          a tool call whose arguments do not fit the tool's schema
    ├── ToolError                  a tool that could not do its job and says why
    ├── ScriptError                a scripted model was asked for a step it does not have, or kept one over
    └── ProviderError              the model could not answer
        ├── ApiKeyMissingError     no key for a server that wants one
        ├── ApiStatusError         the server answered with an error status
        │   └── ContextOverflowError   the request is larger than the model's context window
        ├── NetworkError           the server could not be reached, or the connection was lost
        └── StreamError            the stream ended early, fell silent or could not be read

Each message says what happened and what to do next, in one paragraph, and never contains a key.
"""

from __future__ import annotations


class AgentError(Exception):
    """Root of the tree. ``str(error)`` is one paragraph for the person at the keyboard."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback: the paragraph says what to do, the frames are ours."""
        return [f"{type(self).__name__}: {self}"]


class UsageError(AgentError):
    """A magic, flag or argument that cannot be carried out as written."""


class ModelNotSetError(AgentError):
    """No model was given. No fallback model is ever chosen (Manual §6.1)."""

    def __init__(self) -> None:
        super().__init__(
            "No model specified. Pass model=… (in a notebook: %agent model NAME), or set OPENAI_MODEL; "
            "the model 'demo' needs neither key nor network."
        )


class ApproverMissingError(AgentError):
    """A tool needs approval and no approver was set (Manual §8.3, §21)."""

    def __init__(self, tool_name: str, explanation: str = "") -> None:
        super().__init__(
            f"Tool {tool_name} requires approval, but "
            + (
                explanation
                or "no approver was set. Call engine.set_approver(…), or create the engine with "
                "default_approval='deny' or 'allow'."
            )
        )


class EngineBusyError(AgentError):
    """A turn is still running on this engine (Manual §12.6)."""

    def __init__(self) -> None:
        super().__init__(
            "This engine is in the middle of a turn. Wait for its turn_end, stop it with request_interrupt(), "
            "or give the other conversation an engine of its own."
        )


class AttachmentError(AgentError):
    """An attachment is missing, too big or of an unusable type (Manual §13)."""


class SandboxUnavailableError(AgentError):
    """``sandbox mode=required`` on a machine without a usable sandbox (Manual §8.4)."""


class McpConfigError(AgentError):
    """An MCP configuration file cannot be used (Manual §15.2)."""


class ToolArgumentError(AgentError):
    """Arguments that do not fit the tool's schema; the message is written for the model."""


class ToolError(AgentError):
    """A tool could not do its job; the message is what the model reads."""


class ScriptError(AgentError):
    """A scripted model was asked for a step it does not have, or steps were left over."""


class ProviderError(AgentError):
    """The model could not answer.

    ``retriable`` says whether the same request may succeed later (Manual §9.4).
    """

    retriable: bool = False

    def __init__(self, message: str, *, retriable: bool | None = None) -> None:
        super().__init__(message)
        if retriable is not None:
            self.retriable = retriable


class ApiKeyMissingError(ProviderError):
    """No API key for a server that wants one."""

    def __init__(self, variable: str = "OPENAI_API_KEY") -> None:
        super().__init__(
            f"{variable} is not set. Set it in the environment before Python or the kernel starts (%agent doctor "
            "checks it), give it to OpenAIProvider(api_key=…), or try the model 'demo', which needs no key."
        )


class ApiStatusError(ProviderError):
    """The server answered with an error status.

    ``status`` is the HTTP status, ``code`` the server's own error code when it sent one.
    """

    def __init__(self, message: str, *, status: int, code: str | None = None, retriable: bool | None = None) -> None:
        super().__init__(message, retriable=status == 429 or status >= 500 if retriable is None else retriable)
        self.status = status
        self.code = code


class ContextOverflowError(ApiStatusError):
    """The request is larger than the model's context window (Manual §14.1)."""


class NetworkError(ProviderError):
    """The server could not be reached, or the connection was lost."""

    retriable = True


class StreamError(ProviderError):
    """The stream ended without a finish reason, fell silent, or carried something unreadable."""

    retriable = True
