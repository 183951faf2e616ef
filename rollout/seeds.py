"""Sampling seeds as a pure function of what is sampled: never of wall clock, process or completion order."""

from __future__ import annotations

import hashlib
import json
import random
from contextvars import ContextVar

_EPISODE: ContextVar[int] = ContextVar("the seed of the episode that runs")


def call_seed(run_seed: int, step: int, task_id: str, member: int, call: int) -> int:
    """The seed of one agent call, in ``[0, 2**63)``: what torch and vLLM both take.

    Args:
        run_seed: of the whole run.
        step: training iteration.
        task_id: :attr:`data.task.Task.id`.
        member: place in the group of G episodes of the task.
        call: place of the call within its episode.
    """
    identity = json.dumps([run_seed, step, task_id, member, call]).encode()
    return int.from_bytes(hashlib.blake2b(identity, digest_size=8).digest(), "big") >> 1


def episode_seed(run_seed: int, step: int, task_id: str, member: int) -> int:
    """The seed of what a MAS draws in one episode: none of its calls', in ``[0, 2**63)``."""
    return call_seed(run_seed, step, task_id, member, -1)


def enter_episode(seed: int) -> None:
    """From here on, in this asyncio task and those that it starts, :func:`episode_rng` draws from ``seed``."""
    _EPISODE.set(seed)


def episode_rng() -> random.Random:
    """What a MAS draws by itself comes from here (a graph from a learned topology, say), not from a stream that other
    episodes draw from too. A new stream each time, the same in all of one episode; whoever trains the policy that drew
    finds it again by :func:`episode_seed`.

    Raises ``LookupError`` outside of an episode.
    """
    return random.Random(_EPISODE.get())


def retry_seed(seed: int, attempt: int) -> int:
    """The seed of attempt ``attempt`` at a call, the call's own for the first one (0); in ``[0, 2**63)``."""
    return call_seed(seed, attempt, "retry", 0, 0) if attempt else seed
