"""The thread of the engines, and what tries to end it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from zq_notebook.errors import AgentError
from zq_notebook.notebook.engine_thread import EngineThread

SECONDS = 10


@pytest.fixture(scope="module")
def thread() -> EngineThread:
    return EngineThread()


async def the_answer() -> int:
    return 42


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit()])
def test_what_would_end_the_program_becomes_an_ordinary_error_and_the_thread_goes_on(
    thread: EngineThread, error: BaseException
) -> None:
    async def fail() -> None:
        raise error

    with pytest.raises(AgentError, match=type(error).__name__) as caught:
        thread.submit(fail()).result(SECONDS)
    assert caught.value.__cause__ is error
    assert thread.submit(the_answer()).result(SECONDS) == 42


def test_a_task_beside_the_turn_that_tries_to_end_the_program_stops_nothing(thread: EngineThread) -> None:
    async def child() -> None:
        raise SystemExit

    async def turn() -> int:
        beside = asyncio.create_task(child())
        await asyncio.wait({beside})
        assert isinstance(beside.exception(), SystemExit)
        return await the_answer()

    assert thread.submit(turn()).result(SECONDS) == 42


def test_an_ordinary_exception_is_passed_on_as_it_is(thread: EngineThread) -> None:
    async def fail() -> None:
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is"):
        thread.submit(fail()).result(SECONDS)


def test_cancelling_the_future_cancels_the_work(thread: EngineThread) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    future = thread.submit(work())
    assert begun.wait(SECONDS)
    future.cancel()
    assert cancelled.wait(SECONDS)
