"""What the lifecycle needs to know of a finished episode: an entry's fate depends on this and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from data.trajectory import Trajectory

SUCCESS = 1.0
"""A reward from which an episode counts as a success in n_succ (ours)."""


@dataclass(frozen=True)
class Episode:
    """T_k as the rules see it.

    Attributes:
        index: k, from 0, in task order.
        reward: R_norm, in [0, 1].
        injected: ids of the entries that each agent read, by agent, in the order of the prompt.
        actions: what each agent did, by agent: the first word of each of its outputs (the verb of a world's action).
        judgements: LLM_a(m) for each a ∈ A_m, by entry id; nothing for an entry that nobody judged.
        insights: what each agent distilled from its own trace, by agent.
    """

    index: int
    reward: float
    injected: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    actions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    judgements: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    insights: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.reward <= 1:
            raise ValueError(f"episode {self.index}: the reward is {self.reward}; CoMem's R_norm is in [0, 1]")

    @property
    def success(self) -> bool:
        """Whether a use in this episode is a successful one."""
        return self.reward >= SUCCESS

    @property
    def used(self) -> frozenset[str]:
        """Every entry that was injected for any agent: once, however many calls read it."""
        return frozenset(each for ids in self.injected.values() for each in ids)


def episode_of(index: int, trajectory: Trajectory, reward: str) -> Episode:
    """The record of ``trajectory``, before anybody was asked about it.

    Raises:
        ValueError: the trajectory's score has no metric ``reward``.
    """
    if reward not in trajectory.score:
        raise ValueError(
            f"task {trajectory.task.id}: CoMem's reward is {reward!r}, but {trajectory.task.benchmark} scores "
            f"{', '.join(sorted(trajectory.score))}; set the memory's settings.reward to one of these"
        )
    injected: dict[str, dict[str, None]] = {}
    actions: dict[str, list[str]] = {}
    for step in trajectory.steps:
        injected.setdefault(step.agent, {}).update(dict.fromkeys(step.entry_ids))
        actions.setdefault(step.agent, []).extend(step.output.lower().split()[:1])
    return Episode(
        index=index,
        reward=float(trajectory.score[reward]),
        injected={agent: tuple(ids) for agent, ids in injected.items()},
        actions={agent: tuple(words) for agent, words in actions.items()},
    )
