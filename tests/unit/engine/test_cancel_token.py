"""The token that says "stop": from threads, coroutines and signal handlers."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Awaitable
from typing import Any, cast

import pytest

from zq_notebook.cancel import CancelToken


def test_callbacks_run_once_in_the_order_in_which_they_were_added() -> None:
    token, log = CancelToken(), []
    for n in range(3):
        token.on_cancel(lambda n=n: log.append(n))  # type: ignore[misc]
    token.set()
    token.set()
    assert log == [0, 1, 2]
    assert token.is_set()


def test_callback_added_late_runs_at_once() -> None:
    token, log = CancelToken(), []
    token.set()
    token.on_cancel(lambda: log.append("late"))()
    assert log == ["late"]


def test_callback_that_was_taken_off_does_not_run() -> None:
    token, log = CancelToken(), []
    remove = token.on_cancel(lambda: log.append("gone"))
    token.on_cancel(lambda: log.append("stays"))
    remove()
    remove()
    token.set()
    assert log == ["stays"]


def test_callback_that_fails_keeps_neither_the_others_nor_the_caller(caplog: pytest.LogCaptureFixture) -> None:
    token, log = CancelToken(), []
    token.on_cancel(lambda: 1 / 0)
    token.on_cancel(lambda: log.append("ran"))
    token.set()
    assert log == ["ran"]
    assert "callback of a CancelToken failed" in caplog.text


def test_callback_may_set_and_add_again() -> None:
    token, log = CancelToken(), []
    token.on_cancel(lambda: (token.set(), token.on_cancel(lambda: log.append("inner"))))
    token.set()
    assert log == ["inner"]


def test_wait_in_a_thread_blocks_until_set() -> None:
    token = CancelToken()
    assert token.wait(0) is False
    assert token.wait(0.001) is False
    seen: list[Any] = []
    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        seen.append(token.wait())

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    token.set()
    thread.join(5)
    assert seen == [True]
    assert token.wait(0) is True


def test_wait_leaves_no_callback_behind() -> None:
    token = CancelToken()
    token.wait(0)
    asyncio.run(token.wait_async(0))
    assert token._callbacks == {}


async def test_wait_in_a_coroutine_does_not_block_the_loop() -> None:
    token = CancelToken()
    assert await cast("Awaitable[bool]", token.wait(0.001)) is False
    asyncio.get_running_loop().call_soon(token.set)
    assert await cast("Awaitable[bool]", token.wait(10)) is True
    assert await token.wait_async() is True


async def test_coroutine_is_woken_from_another_thread() -> None:
    token = CancelToken()
    waiter = asyncio.ensure_future(token.wait_async())
    await asyncio.sleep(0)
    await asyncio.to_thread(token.set)
    assert await waiter is True


async def test_waiting_coroutine_can_be_cancelled() -> None:
    token = CancelToken()
    waiter = asyncio.ensure_future(token.wait_async(60))
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert token._callbacks == {}


def test_setting_for_a_loop_that_is_closed_is_harmless() -> None:
    token = CancelToken()
    waiting = token.wait_async()

    async def wait_halfway() -> None:
        waiting.send(None)

    asyncio.run(wait_halfway())
    assert len(token._callbacks) == 1
    token.set()
    waiting.close()


def test_many_threads_set_and_add_at_the_same_time() -> None:
    for _ in range(50):
        token, log = CancelToken(), []
        start = threading.Barrier(6)

        def add() -> None:
            start.wait()  # noqa: B023
            for n in range(20):
                token.on_cancel(lambda n=n: log.append(n))  # type: ignore[misc]  # noqa: B023

        def stop() -> None:
            start.wait()  # noqa: B023
            token.set()  # noqa: B023

        threads = [threading.Thread(target=f) for f in (add, add, add, add, stop, stop)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(log) == sorted(list(range(20)) * 4)


@pytest.mark.skipif(sys.platform == "win32", reason="no interval timer")
def test_set_from_a_signal_handler_never_waits_for_the_code_it_interrupted() -> None:
    token = CancelToken()
    rounds = 0

    def handler(number: int, frame: Any) -> None:
        nonlocal token, rounds
        token.set()
        token, rounds = CancelToken(), rounds + 1

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
    try:
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            current, ran = token, []
            current.on_cancel(lambda: ran.append(1))  # noqa: B023
            current.wait(0.0001)
            current.set()
            assert ran == [1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rounds > 100
