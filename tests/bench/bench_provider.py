"""CPU time per streamed delta: OpenAIProvider beside the bare SDK and the bare HTTP client.

One loopback server in a process of its own, rounds interleaved, medians of ``time.process_time``:

    python tests/bench/bench_provider.py [--deltas 2000] [--rounds 9] [--burst 1] [--turns 200]

``--burst`` puts that many events into one network write. The second table is the cost of one request with a history
of ``--turns`` turns and a reply of one word.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import statistics
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection

import httpx2
import openai

from zq_notebook.engine.messages import Message
from zq_notebook.engine.ports import StreamOptions
from zq_notebook.providers.openai import OpenAIProvider

WORD = "word "


def _chat_events(deltas: int) -> list[bytes]:
    head = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "system_fingerprint": "f",
    }

    def event(delta: dict[str, str], finish: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"

    return [event({"content": WORD}, None)] * deltas + [event({}, "stop"), b"data: [DONE]\n\n"]


def _responses_events(deltas: int) -> list[bytes]:
    def event(kind: str, **fields: object) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()

    delta = event(
        "response.output_text.delta",
        sequence_number=7,
        item_id="msg_0123456789abcdef",
        output_index=0,
        content_index=0,
        delta=WORD,
        logprobs=[],
        obfuscation="abcdefgh",
    )
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": []}
    return [delta] * deltas + [event("response.completed", sequence_number=8, response=response)]


def _serve(pipe: Connection) -> None:
    """Answers every POST with as many deltas as the header X-Deltas says, X-Burst of them per write."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
                await reader.readexactly(int(fields.get("content-length", 0)))
                deltas, burst = int(fields.get("x-deltas", 1)), int(fields.get("x-burst", 1))
                events = (_responses_events if "/responses" in head.split("\r\n")[0] else _chat_events)(deltas)
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                )
                for at in range(0, len(events), burst):
                    data = b"".join(events[at : at + burst])
                    writer.write(b"%x\r\n%b\r\n" % (len(data), data))
                    await asyncio.sleep(0)
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        except asyncio.IncompleteReadError:
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def _options() -> StreamOptions:
    return StreamOptions(req_id="bench", log_time="2026-01-01T00:00:00Z")


def _contenders(base_url: str, deltas: int, burst: int) -> dict[str, Callable[[list[Message]], Awaitable[int]]]:
    headers = {"X-Deltas": str(deltas), "X-Burst": str(burst)}
    http = httpx2.AsyncClient(headers=headers)
    sdk = openai.AsyncOpenAI(api_key="k", base_url=base_url, default_headers=headers)
    ours = {
        api: OpenAIProvider("k", base_url, api_mode=api, http_client=httpx2.AsyncClient(headers=headers))
        for api in ("chat", "responses")
    }

    async def bare_http(messages: list[Message]) -> int:
        body = {"model": "m", "messages": messages, "stream": True}
        async with http.stream("POST", f"{base_url}/chat/completions", json=body) as response:
            return sum([1 async for _ in response.aiter_raw()])

    async def provider(api: str, messages: list[Message]) -> int:
        return sum([1 async for chunk in ours[api].stream("m", messages, [], _options()) if chunk.content])

    async def sdk_chat(messages: list[Message]) -> int:
        stream = await sdk.chat.completions.create(model="m", messages=messages, stream=True)  # type: ignore[arg-type]
        return sum([1 async for chunk in stream if chunk.choices and chunk.choices[0].delta.content])

    async def sdk_responses(messages: list[Message]) -> int:
        stream = await sdk.responses.create(model="m", input=messages, stream=True, store=False)  # type: ignore[arg-type]
        return sum([1 async for event in stream if event.type == "response.output_text.delta"])

    return {
        "bare HTTP client, bytes only": bare_http,
        "provider, chat": lambda m: provider("chat", m),
        "provider, responses": lambda m: provider("responses", m),
        "openai SDK, chat": sdk_chat,
        "openai SDK, responses": sdk_responses,
    }


async def _measure(base_url: str, deltas: int, burst: int, rounds: int, messages: list[Message]) -> dict[str, float]:
    """Median CPU seconds of one whole reply for each contender, rounds interleaved, after one warm-up each."""
    contenders = _contenders(base_url, deltas, burst)
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    for round_number in range(rounds + 1):
        for name, run in contenders.items():
            started = time.process_time()
            await run(messages)
            if round_number:
                samples[name].append(time.process_time() - started)
    return {name: statistics.median(values) for name, values in samples.items()}


def _history(turns: int) -> list[Message]:
    messages = [Message(role="system", content="You are helpful. " * 100)]
    for turn in range(turns):
        call = {
            "id": f"call_{turn}",
            "type": "function",
            "function": {"name": "read_file", "arguments": '{"path":"a"}'},
        }
        messages.append(Message(role="user", content=f"Question {turn} " * 10))
        messages.append(Message(role="assistant", content=None, tool_calls=[call]))
        messages.append(Message(role="tool", tool_call_id=f"call_{turn}", content="line of a file\n" * 60))
        messages.append(Message(role="assistant", content="An answer with some words. " * 10))
    return messages


def _table(title: str, unit: str, figures: dict[str, float], base: str) -> None:
    print(f"\n{title}")
    for name, value in figures.items():
        print(f"  {name:32} {value:10.2f} {unit}   {value / figures[base]:6.2f} x {base}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("deltas", 2000), ("rounds", 9), ("burst", 1), ("turns", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
    server.start()
    base_url = f"http://127.0.0.1:{here.recv()}/v1"
    short = [Message(role="user", content="hi")]
    stream = asyncio.run(_measure(base_url, args.deltas, args.burst, args.rounds, short))
    per_delta = {name: seconds / args.deltas * 1e6 for name, seconds in stream.items()}
    _table(f"CPU per delta ({args.burst} per network write)", "µs", per_delta, "openai SDK, chat")
    long = asyncio.run(_measure(base_url, 1, 1, args.rounds, _history(args.turns)))
    _table(
        f"CPU per request with {args.turns} turns of history",
        "ms",
        {n: s * 1e3 for n, s in long.items()},
        "openai SDK, chat",
    )
    server.terminate()


if __name__ == "__main__":
    main()
