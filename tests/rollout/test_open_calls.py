from __future__ import annotations

import asyncio

import pytest

from rollout.engine import EngineDiedError
from rollout.open_calls import OpenCalls


async def endless(ended: list[str]) -> str:
    try:
        await asyncio.sleep(60)
    finally:
        ended.append("cleaned up")
    return "never"


async def say(text: str) -> str:
    return text


async def fail() -> str:
    raise LookupError("no such thing")


def test_results_and_errors_pass() -> None:
    async def run() -> None:
        calls = OpenCalls("test")
        assert await calls.run("task t0, agent a", say("Lima")) == "Lima"
        with pytest.raises(LookupError, match="no such thing"):
            await calls.run("task t0, agent a", fail())

    asyncio.run(run())


def test_closing_ends_every_call_with_an_engine_error_of_its_own() -> None:
    async def run() -> None:
        ended: list[str] = []
        calls = OpenCalls("test")
        waiting = [asyncio.ensure_future(calls.run(f"task t{n}, agent a", endless(ended))) for n in range(3)]
        await asyncio.sleep(0.01)
        await calls.close()
        assert ended == ["cleaned up"] * 3
        outcome = await asyncio.gather(*waiting, return_exceptions=True)
        messages = [f"task t{n}, agent a: the test engine was closed before it answered" for n in range(3)]
        assert [str(failure) for failure in outcome] == messages
        assert all(isinstance(failure, EngineDiedError) for failure in outcome)
        await calls.close()

    asyncio.run(run())


def test_a_caller_that_is_cancelled_takes_its_call_along() -> None:
    async def run() -> None:
        ended: list[str] = []
        calls = OpenCalls("test")
        waiting = asyncio.ensure_future(calls.run("task t0, agent a", endless(ended)))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(0)
        assert ended == ["cleaned up"]

    asyncio.run(run())
