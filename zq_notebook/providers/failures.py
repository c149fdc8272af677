"""From what the HTTP client, the SDK and the server call an error to the package's own exceptions.

Each message is one paragraph: what happened, what the server said, what to do next. Keys never appear in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from zq_notebook.errors import ApiStatusError, ContextOverflowError, NetworkError, ProviderError, StreamError
from zq_notebook.providers.masking import mask_secrets

if TYPE_CHECKING:
    import openai

_OVERFLOW = re.compile(
    r"context[_ ]length[_ ]exceeded|maximum context length|context window|prompt is too long|too many (?:input )?tokens"
    r"|reduce the length of|exceeds? the (?:maximum|available|model'?s?) (?:context|input)|input is too long"
    r"|maximum (?:number of )?(?:input )?tokens|exceed_context_size|larger than the context|context size",
    re.IGNORECASE,
)
_COMPLAINT = re.compile(
    r"unknown|unsupported|unrecogni[sz]ed|unexpected|not (?:supported|permitted|allowed|implemented|valid)|"
    r"n[o']t support|supported values|extra (?:inputs|fields)|invalid (?:param|field|value|type|url|endpoint)|"
    r"missing|required|responses|chat/completions|previous_response",
    re.IGNORECASE,
)
_STATUS_OF_CODE = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "server_error": 500,
    "api_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "overloaded_error": 503,
    "overloaded": 503,
    "service_unavailable": 503,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "content_policy_violation": 400,
    "bad_request": 400,
}
_DETAIL_LIMIT = 500


class Server(msgspec.Struct, frozen=True):
    """Who is being talked to, for the messages: ``host`` with its port, the model, and what must not be printed."""

    host: str
    model: str = ""
    secrets: tuple[str, ...] = ()
    local: bool = False

    def clean(self, text: str) -> str:
        """``text`` on one line, without secrets, at most 500 characters."""
        text = " ".join(mask_secrets(text, self.secrets).split())
        return text if len(text) <= _DETAIL_LIMIT else f"{text[:_DETAIL_LIMIT]}…"


class ErrorBody(msgspec.Struct, frozen=True):
    """What a server says about an error, whatever shape it came in."""

    message: str = ""
    code: str | None = None
    type: str | None = None
    param: str | None = None

    @classmethod
    def of(cls, body: Any) -> ErrorBody:
        """From an error body: ``{"error": {…}}``, ``{"error": "…"}``, ``{"detail": …}`` or plain text."""
        while isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
            body = body["error"]
        if isinstance(body, str):
            return cls("" if "<html" in body[:500].lower() else body)
        if not isinstance(body, Mapping):
            return cls()
        said = next((body[key] for key in ("message", "error", "detail", "msg") if body.get(key)), "")
        message = said if isinstance(said, str) else msgspec.json.encode(said, enc_hook=str).decode()
        names = (str(body[key]) if body.get(key) is not None else None for key in ("code", "type", "param"))
        return cls(message, *names)

    @property
    def text(self) -> str:
        """Everything in one string, to look for words in."""
        return " ".join(filter(None, (self.message, self.code, self.type, self.param)))

    @property
    def status(self) -> int | None:
        """The HTTP status that this error stands for, when it says so inside a stream."""
        for name in (self.code, self.type):
            if name and name.isdecimal() and 400 <= int(name) < 600:
                return int(name)
            if name in _STATUS_OF_CODE:
                return _STATUS_OF_CODE[name]
        return None

    @property
    def is_overflow(self) -> bool:
        """Whether the request was larger than the model's context window."""
        return bool(_OVERFLOW.search(self.text))


def body_of(error: openai.APIStatusError) -> ErrorBody:
    """What the server said with an error status."""
    said = ErrorBody.of(error.body)
    return said if said.message else msgspec.structs.replace(said, message=_plain_text(error))


def _plain_text(error: openai.APIStatusError) -> str:
    text = error.response.text.strip()
    return "" if text.startswith(("<", "{", "[")) else text


def status_error(status: int, said: ErrorBody, server: Server) -> ApiStatusError:
    """The exception for an error status, or for an error in a stream that stands for one."""
    if (said.is_overflow and status in (400, 413, 422, 500)) or status == 413:
        return ContextOverflowError(
            f"The request is larger than the context window of {server.model or 'the model'} ({status})."
            f"{_quoted(said, server)} Start a new session, or use a model with a larger window.",
            status=status,
            code=said.code,
            retriable=False,
        )
    spent = status == 429 and "quota" in said.text.lower()
    retriable = status in (408, 409, 429) or status >= 500
    return ApiStatusError(
        _sentence(status, said, server, spent), status=status, code=said.code, retriable=retriable and not spent
    )


def _sentence(status: int, said: ErrorBody, server: Server, spent: bool) -> str:
    host, quoted = server.host, _quoted(said, server)
    if status == 401:
        return (
            f"{host} refused the API key (401).{quoted} Check OPENAI_API_KEY, and OPENAI_BASE_URL if the key is for "
            "another server."
        )
    if status == 403:
        return f"{host} does not allow this request (403).{quoted} Check what the key may use, and the model's name."
    if status in (404, 405):
        return (
            f"{host} knows neither this address nor perhaps the model {server.model!r} ({status}).{quoted} Check the "
            "model's name, and that OPENAI_BASE_URL is the address the server's documentation gives (it often ends "
            "in /v1)."
        )
    if spent:
        return f"{host} says that the quota of this key is used up (429).{quoted} Check the account's plan and billing."
    if status == 429:
        return f"{host} is limiting requests (429).{quoted} Wait a little and try again."
    if status >= 500:
        return f"{host} could not answer ({status}).{quoted} The trouble is on the server's side: try again later."
    return f"{host} did not accept the request ({status}).{quoted} Check the model's name and options."


def _quoted(said: ErrorBody, server: Server) -> str:
    detail = server.clean(said.message)
    return f" It says: {detail.rstrip('.')}." if detail else ""


def stream_failure(error: Any, server: Server) -> ProviderError:
    """The exception for an error object that came inside a stream."""
    said = ErrorBody.of(error)
    if said.is_overflow:
        return status_error(400, said, server)
    status = said.status
    if status is not None:
        return status_error(status, said, server)
    return StreamError(f"{server.host} broke off its answer.{_quoted(said, server)} Send the request again.")


def ended_early(server: Server) -> StreamError:
    """The exception for a stream that ended without saying that it was finished."""
    return StreamError(
        f"The answer of {server.host} ended in the middle: the stream was cut before the model said it had finished. "
        "Send the request again."
    )


def network_error(error: BaseException, server: Server, *, in_stream: bool = False) -> ProviderError:
    """The exception for a server that could not be reached, or was lost."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    reason = server.clean(str(cause) or type(cause).__name__)
    if in_stream:
        return StreamError(
            f"The connection to {server.host} was lost in the middle of the answer ({reason}). Try again."
        )
    if "Timeout" in type(error).__name__ or isinstance(cause, TimeoutError):
        return NetworkError(
            f"{server.host} did not answer in time. Try again; for a slow server raise OPENAI_TIMEOUT_MS."
        )
    if "CERTIFICATE" in reason.upper():
        advice = "Its certificate is not trusted: set SSL_CERT_FILE to the certificates of your network."
    elif "WRONG_VERSION_NUMBER" in reason:
        advice = "It does not speak TLS: its address probably begins with http://, not https:// (OPENAI_BASE_URL)."
    elif server.local:
        advice = "Is the local model server running, and is OPENAI_BASE_URL its address?"
    else:
        advice = "Check the network, HTTPS_PROXY and NO_PROXY, and OPENAI_BASE_URL."
    return NetworkError(f"Could not reach {server.host} ({reason}). {advice}")


def is_endpoint_missing(status: int) -> bool:
    """Whether a status says that a server does not have an endpoint at all."""
    return status in (404, 405, 501)


def is_complaint(status: int, said: ErrorBody) -> bool:
    """Whether a server does not understand the form of a request, rather than its content."""
    if said.is_overflow or status not in (400, 415, 422):
        return False
    return status != 400 or said.param is not None or bool(_COMPLAINT.search(said.text))
