"""Request and response files for whoever must be able to show what was sent (Manual §10.1).

``<log_dir>/2026-01-31/<req_id>.<api>.request.json`` and ``….response.json``, readable by their owner alone, without
keys and without the bytes of pictures.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from zq_notebook.engine.messages import StreamChunk
from zq_notebook.engine.ports import StreamOptions
from zq_notebook.providers.masking import mask_secrets
from zq_notebook.text import logs

logger = logs.logger("zq_notebook.providers")

_DATA_URL = re.compile(r"(data:[\w.+\-]+/[\w.+\-]+(?:;[\w=.+\-]+)*;base64,)([A-Za-z0-9+/=_\-]{64,})")
_LONG_BASE64 = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{1024,}={0,2}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def without_base64(text: str) -> str:
    """``text`` with the payload of data URLs, and any other long base64, replaced by its length."""
    text = _DATA_URL.sub(lambda m: f"{m[1]}({len(m[2])} characters left out)", text)
    return _LONG_BASE64.sub(lambda m: f"({len(m[0])} characters of base64 left out)", text)


class AuditLog:
    """Writes the files of one provider. What cannot be written is logged as a warning, and never stops a turn."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)

    async def begin(self, opts: StreamOptions, api: str, url: str, body: bytes, secrets: Iterable[str]) -> AuditRecord:
        """Write the request, and give back what collects the response."""
        record = AuditRecord(self._stem(opts, api), tuple(secrets))
        head = {"req_id": opts.req_id, "task_id": opts.task_id, "log_time": opts.log_time, "api": api, "url": url}
        text = msgspec.json.encode({**head, "body": msgspec.Raw(body)}).decode()
        await asyncio.to_thread(record.write, "request", text)
        return record

    def _stem(self, opts: StreamOptions, api: str) -> Path:
        date = _DATE.match(opts.log_time)
        day = date[0] if date else datetime.now(UTC).date().isoformat()
        name = re.sub(r"[^\w\-]+", "_", opts.req_id)[:100] or "request"
        return self.directory / day / f"{name}.{api}"


class AuditRecord:
    """Collects one response as it is streamed."""

    def __init__(self, stem: Path, secrets: tuple[str, ...]) -> None:
        self._stem = stem
        self._secrets = secrets
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._last: StreamChunk | None = None
        self._started = time.monotonic()

    def add(self, chunks: Iterable[StreamChunk]) -> None:
        """Note what was streamed."""
        for chunk in chunks:
            if chunk.content:
                self._content.append(chunk.content)
            if chunk.reasoning:
                self._reasoning.append(chunk.reasoning)
            if chunk.finish_reason:
                self._last = chunk

    async def finish(self, error: BaseException | None = None) -> None:
        """Write the response, complete or with the error that ended it."""
        said: dict[str, Any] = {
            "duration_ms": round((time.monotonic() - self._started) * 1000),
            "content": "".join(self._content),
            "reasoning": "".join(self._reasoning),
        }
        if self._last is not None:
            said["tool_calls"] = [call.to_message() for call in self._last.tool_calls or ()]
            said["usage"] = self._last.usage.to_dict() if self._last.usage else None
            said["finish_reason"] = self._last.finish_reason
        if error is not None:
            said["error"] = {"type": type(error).__name__, "message": str(error)}
        # Cancellation must not lose the record, and cannot wait: a thread finishes the writing on its own.
        writing = asyncio.get_running_loop().run_in_executor(
            None, self.write, "response", msgspec.json.encode(said).decode()
        )
        await asyncio.shield(writing)

    def write(self, kind: str, text: str) -> None:
        """Write one file, under a new name when the request id was used before."""
        text = without_base64(mask_secrets(text, self._secrets))
        try:
            self._stem.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.fdopen(self._create(kind), "w", encoding="utf-8") as out:
                out.write(text)
        except OSError as error:
            logger.warning("could not write the audit file of %s: %s", self._stem.name, error)

    def _create(self, kind: str) -> int:
        """A new file for its owner alone; the response goes beside its request."""
        stem = self._stem
        for number in range(2, 10_000):
            try:
                file = os.open(f"{stem}.{kind}.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                stem = self._stem.with_name(f"{self._stem.name}-{number}")
                continue
            self._stem = stem
            return file
        raise FileExistsError(f"{self._stem}: too many requests of this id")
