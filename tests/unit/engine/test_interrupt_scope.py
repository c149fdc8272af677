"""The wait that a stop cuts short, attacked from all sides; no stray cancellation may be left on the task."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from zq_notebook.cancel import CancelToken
from zq_notebook.engine.interrupt import InterruptScope, TurnInterrupted, UnexpectedCancel


def cancelling() -> int:
    task = asyncio.current_task()
    assert task is not None
    return task.cancelling()


@pytest.fixture
async def token() -> AsyncIterator[CancelToken]:
    yield CancelToken()
    assert cancelling() == 0
    await asyncio.sleep(0)


def soon(callback: Callable[[], object], rounds: int = 1) -> None:
    """Call back after some rounds of the loop."""
    loop = asyncio.get_running_loop()
    if rounds <= 1:
        loop.call_soon(callback)
    else:
        loop.call_soon(soon, callback, rounds - 1)


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


async def test_value_and_exception_pass_through(token: CancelToken) -> None:
    scope = InterruptScope(token)

    async def give() -> int:
        return 5

    async def fail() -> int:
        raise KeyError("k")

    assert await scope.wait(give) == 5
    with pytest.raises(KeyError):
        await scope.wait(fail)


async def test_token_set_before_starts_nothing(token: CancelToken) -> None:
    scope = InterruptScope(token)
    token.set()
    started: list[int] = []

    async def start() -> None:
        started.append(1)

    with pytest.raises(TurnInterrupted):
        await scope.wait(start)
    assert started == []
    assert cancelling() == 0


async def test_token_set_meanwhile_cuts_the_wait(token: CancelToken) -> None:
    scope = InterruptScope(token)
    soon(token.set)
    with pytest.raises(TurnInterrupted):
        await scope.wait(forever)
    assert cancelling() == 0
    await asyncio.sleep(0)


async def test_token_set_from_a_thread_cuts_the_wait(token: CancelToken) -> None:
    scope = InterruptScope(token)
    setter = asyncio.ensure_future(asyncio.to_thread(token.set))
    with pytest.raises(TurnInterrupted):
        await scope.wait(forever)
    await setter
    assert cancelling() == 0


async def test_wait_that_swallows_the_cut_is_cut_all_the_same(token: CancelToken) -> None:
    scope = InterruptScope(token)

    async def stubborn() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await forever()
        return "late"

    soon(token.set)
    with pytest.raises(TurnInterrupted):
        await scope.wait(stubborn)
    assert cancelling() == 0
    await asyncio.sleep(0)


async def test_wait_that_turns_the_cut_into_its_own_error_leaves_no_count(token: CancelToken) -> None:
    scope = InterruptScope(token)

    async def translate() -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            raise ConnectionError("closed") from None

    soon(token.set)
    with pytest.raises(ConnectionError):
        await scope.wait(translate)
    assert cancelling() == 0
    await asyncio.sleep(0)


@pytest.mark.parametrize("rounds", range(6))
async def test_set_in_the_round_in_which_the_value_comes(token: CancelToken, rounds: int) -> None:
    scope = InterruptScope(token)
    value: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def read() -> int:
        return await value

    soon(lambda: value.set_result(1), 3)
    soon(token.set, rounds + 1)
    with contextlib.suppress(TurnInterrupted):
        assert await scope.wait(read) == 1
    assert cancelling() == 0
    for _ in range(10):
        await asyncio.sleep(0)
    with pytest.raises(TurnInterrupted):
        await scope.wait(read)


async def test_a_count_left_by_an_earlier_cancellation_is_not_ours_and_not_counted() -> None:
    async def careless() -> str:
        # Goes on without uncancel(), as much code does.
        with contextlib.suppress(asyncio.CancelledError):
            await forever()
        token = CancelToken()
        scope = InterruptScope(token)
        soon(token.set)
        with pytest.raises(TurnInterrupted):
            await scope.wait(forever)
        assert cancelling() == 1
        await asyncio.sleep(0)
        return "done"

    task = asyncio.ensure_future(careless())
    await asyncio.sleep(0)
    task.cancel()
    assert await task == "done"


@pytest.mark.parametrize("first", ["outside", "inside"])
async def test_cancelled_from_outside_at_the_same_moment_stays_cancelled(first: str) -> None:
    token = CancelToken()
    outcome: list[object] = []

    async def consumer() -> None:
        scope = InterruptScope(token)
        try:
            await scope.wait(forever)
        except BaseException as error:
            outcome.append(type(error))
            outcome.append(cancelling())
            raise

    task = asyncio.ensure_future(consumer())
    await asyncio.sleep(0)
    if first == "outside":
        task.cancel()
        token.set()
    else:
        token.set()
        await asyncio.sleep(0)  # lets the cut be made, and comes back before the task does
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert outcome == [asyncio.CancelledError, 1]


async def test_timeout_around_the_wait_fires_as_a_timeout(token: CancelToken) -> None:
    scope = InterruptScope(token)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await scope.wait(forever)
    assert cancelling() == 0


async def test_timeout_and_stop_in_the_same_round(token: CancelToken) -> None:
    scope = InterruptScope(token)
    loop = asyncio.get_running_loop()

    async def both() -> None:
        async with asyncio.timeout(None) as limit:
            loop.call_soon(token.set)
            loop.call_soon(limit.reschedule, loop.time() - 1)
            await scope.wait(forever)

    with pytest.raises((TimeoutError, TurnInterrupted)):
        await both()
    assert cancelling() == 0
    await asyncio.sleep(0)


async def test_timeout_inside_the_wait_is_its_own_matter(token: CancelToken) -> None:
    scope = InterruptScope(token)

    async def limited() -> str:
        try:
            async with asyncio.timeout(0.001):
                await forever()
        except TimeoutError:
            return "limit"
        return "never"

    assert await scope.wait(limited) == "limit"
    soon(token.set)

    async def long() -> None:
        async with asyncio.timeout(60):
            await forever()

    with pytest.raises(TurnInterrupted):
        await scope.wait(long)
    assert cancelling() == 0


async def test_wait_for_inside_the_wait(token: CancelToken) -> None:
    scope = InterruptScope(token)
    soon(token.set)
    with pytest.raises(TurnInterrupted):
        await scope.wait(lambda: asyncio.wait_for(forever(), 60))
    assert cancelling() == 0


@pytest.mark.parametrize("stop", [False, True])
async def test_task_group_around_the_wait_gets_its_cancellation(token: CancelToken, stop: bool) -> None:
    scope = InterruptScope(token)

    async def child() -> None:
        if stop:
            token.set()
        raise ValueError("child")

    async def parent() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(child())
            await scope.wait(forever)

    with pytest.raises(ExceptionGroup) as group:
        await parent()
    assert [type(error) for error in group.value.exceptions] == [ValueError]
    assert cancelling() == 0
    await asyncio.sleep(0)


async def test_cancellation_that_nobody_asked_for_is_an_error(token: CancelToken) -> None:
    scope = InterruptScope(token)

    async def broken() -> None:
        raise asyncio.CancelledError

    with pytest.raises(UnexpectedCancel):
        await scope.wait(broken)
    assert cancelling() == 0


async def test_waits_that_never_suspend_see_the_token_at_the_next_one(token: CancelToken) -> None:
    scope = InterruptScope(token)
    reads = 0

    async def read() -> None:
        nonlocal reads
        reads += 1
        if reads == 100:
            token.set()

    async def consume() -> None:
        while True:
            await scope.wait(read)

    with pytest.raises(TurnInterrupted):
        await consume()
    assert reads == 100
    await asyncio.sleep(0)
    assert cancelling() == 0


async def test_closed_scope_is_not_woken_any_more(token: CancelToken) -> None:
    scope = InterruptScope(token)
    scope.close()
    soon(token.set)

    async def short() -> str:
        await asyncio.sleep(0.001)
        return "whole"

    assert await scope.wait(short) == "whole"


async def test_each_wait_may_be_in_another_task(token: CancelToken) -> None:
    scope = InterruptScope(token)

    async def short() -> int:
        await asyncio.sleep(0)
        return 1

    for _ in range(3):
        assert await asyncio.ensure_future(scope.wait(short)) == 1
    soon(token.set, 3)
    with pytest.raises(TurnInterrupted):
        await asyncio.ensure_future(scope.wait(forever))


async def test_at_random_moments_with_and_without_a_cancellation_from_outside() -> None:
    dice = random.Random(7)
    for _ in range(300):
        token = CancelToken()
        ended: list[str] = []

        async def consumer(token: CancelToken = token, ended: list[str] = ended) -> None:
            scope = InterruptScope(token)

            async def step() -> None:
                for _ in range(dice.randrange(3)):
                    await asyncio.sleep(0)

            start: Callable[[], Awaitable[Any]] = step
            try:
                for _ in range(20):
                    await scope.wait(start)
                ended.append("all")
            except TurnInterrupted:
                ended.append("interrupted")
            assert cancelling() == 0
            await asyncio.sleep(0)

        task = asyncio.ensure_future(consumer())
        soon(token.set, dice.randrange(1, 12))
        outer = dice.random() < 0.5
        if outer:
            soon(task.cancel, dice.randrange(1, 12))
        try:
            await task
        except asyncio.CancelledError:
            assert outer
        else:
            assert ended
