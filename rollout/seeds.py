"""Sampling seeds as a pure function of what is sampled: never of wall clock, process or completion order."""

from __future__ import annotations

import hashlib
import json


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


def retry_seed(seed: int, attempt: int) -> int:
    """The seed of attempt ``attempt`` at a call, the call's own for the first one (0); in ``[0, 2**63)``."""
    return call_seed(seed, attempt, "retry", 0, 0) if attempt else seed
