"""What a batch of episodes is for, and the limits under which it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from data.bounds import check_at_least
from rollout.prompt import Injection


@dataclass(frozen=True)
class RolloutSettings:
    """How agents sample and how episodes run.

    Attributes:
        max_tokens: response limit (paper, LatentMem Table 3).
        max_concurrent: episodes in flight at once (ours).
        injection: where latents go in a prompt (ours: before the generation prompt).
        history: last actions and their results that agents read in a world that is acted in (ours).
        constrained_actions: hold actions to those that the world lists (ours: off, agents say what they like).
    """

    max_tokens: int = 4096
    max_concurrent: int = 256
    injection: Injection = "before_generation_prompt"
    history: int = 10
    constrained_actions: bool = False

    def __post_init__(self) -> None:
        check_at_least(
            1, "rollout", max_tokens=self.max_tokens, max_concurrent=self.max_concurrent, history=self.history
        )
        if self.injection not in get_args(Injection):
            raise ValueError(f"rollout.injection is {self.injection!r}; give {' or '.join(get_args(Injection))}")


@dataclass(frozen=True)
class Phase:
    """What a batch of episodes is for: goes into seeds and into the trace.

    Attributes:
        name: ``collect``, ``lmpo``, ``validate`` or ``eval/<memory>``.
        step: training iteration.
        run_seed: of the whole run.
        temperature: 0 is greedy (paper: 1.0 in training, 0 at evaluation).
    """

    name: str
    step: int
    run_seed: int
    temperature: float
