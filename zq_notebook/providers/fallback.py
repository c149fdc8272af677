"""Which API a request goes to, and what earlier answers taught about it (Manual §10.1).

Responses comes first. A server that does not have it is asked on Chat Completions from then on, model by model; a
complaint about the form of a request sends this one request there. Everything else is raised as it is.
"""

from __future__ import annotations

from typing import TypeAlias

from zq_notebook.errors import ApiStatusError
from zq_notebook.providers.chat_wire import ChatWire
from zq_notebook.providers.failures import ErrorBody, is_complaint, is_endpoint_missing
from zq_notebook.providers.responses_wire import ResponsesWire
from zq_notebook.providers.settings import ApiMode
from zq_notebook.providers.wire import Wire

_RESPONSES: Wire = ResponsesWire()
_CHAT: Wire = ChatWire()

Known: TypeAlias = tuple[str, str]


class ApiMemory:
    """What is known about each server and model: who has no Responses, who refused which optional field."""

    def __init__(self) -> None:
        self.chat_only: set[Known] = set()
        self.refused: dict[Known, frozenset[str]] = {}

    def attempt(self, base_url: str, model: str, forced: ApiMode | None) -> Attempt:
        """How to begin one request."""
        return Attempt(self, (base_url, model), forced)


class Attempt:
    """One request on its way through the APIs: ``wire`` is the one to use now."""

    def __init__(self, memory: ApiMemory, known: Known, forced: ApiMode | None) -> None:
        self._memory = memory
        self._known = known
        self._forced = forced is not None
        on_chat = forced == "chat" or (forced is None and known in memory.chat_only)
        self.wire = _CHAT if on_chat else _RESPONSES
        self._endpoint_missing = False
        self._complaint: ApiStatusError | None = None

    @property
    def refused(self) -> frozenset[str]:
        """Optional fields to leave out."""
        return self._memory.refused.get(self._known, frozenset())

    def again(self, said: ErrorBody, error: ApiStatusError) -> bool:
        """Whether to send the request once more in another form, after ``error``."""
        complaint = is_complaint(error.status, said)
        learned = complaint and self._learn_from(said)
        if self.wire is _CHAT or self._forced:
            return learned
        if is_endpoint_missing(error.status):
            self._endpoint_missing = True
        elif complaint:
            self._complaint = error
        else:
            return False
        self.wire = _CHAT
        return True

    def succeeded(self) -> None:
        """The request was accepted: what was found out on the way holds."""
        if self._endpoint_missing:
            self._memory.chat_only.add(self._known)

    def error(self, error: ApiStatusError) -> ApiStatusError:
        """The error to raise: a model that only Responses knows gets what Responses said."""
        return self._complaint if self._complaint is not None and error.status in (404, 405) else error

    def _learn_from(self, said: ErrorBody) -> bool:
        """Note the optional field that a complaint is about; false when it names none that was sent."""
        text = said.text.lower().replace("encrypted content", "encrypted_content")
        named = {field for field in self.wire.optional_fields if field in text} - self.refused
        if "encrypted_content" in text and self.wire is _RESPONSES:
            named |= {"include"} - self.refused
        if named:
            self._memory.refused[self._known] = self.refused | named
        return bool(named)
