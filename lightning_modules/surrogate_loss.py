"""The clipped surrogate of LMPO (Eq. 10-13) over the recorded agent calls of a batch of rollouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from data.trajectory import Step, Trajectory
from lightning_modules.lmpo import LMPOSettings, Surrogate, clipped_surrogate, token_weights
from rollout.failure import broke_off


@dataclass(frozen=True)
class TrainedCall:
    """An agent call that the update follows.

    Attributes:
        trajectory: its place in the batch of rollouts.
        advantage: Â of its trajectory, never 0.
        weight: of each of its tokens in Eq. 11.
    """

    trajectory: int
    step: Step
    advantage: float
    weight: float


def trained_calls(
    trajectories: Sequence[Trajectory], advantages: Sequence[float], settings: LMPOSettings
) -> list[TrainedCall]:
    """Every call whose advantage is not zero.

    Args:
        trajectories: the members of a group stand side by side.
        advantages: of each trajectory.

    The weights count all tokens of a group (Eq. 11), also those of a member whose reward is just the mean; an episode
    that broke off is no member.
    """
    size = settings.group_size
    varied = {index // size for index, advantage in enumerate(advantages) if advantage != 0}
    members = [(i, t) for i, t in enumerate(trajectories) if i // size in varied and not broke_off(t)]
    taken = [(i, step) for i, trajectory in members for step in trajectory.steps]
    lengths, groups = [len(step.output_ids) for _, step in taken], [index // size for index, _ in taken]
    weights = token_weights(lengths, groups, settings.normaliser)
    return [
        TrainedCall(i, step, advantages[i], weight)
        for (i, step), weight in zip(taken, weights, strict=True)
        if advantages[i] != 0
    ]


class SurrogateLoss:
    """:data:`lightning_modules.latent_gradient.CallLoss` of LMPO; remembers what the old policy said.

    On the first pass over a batch the policy is the one that sampled, so its own log-probabilities are the old ones
    (``old_logprobs: recompute``); :meth:`keep` holds them for the passes after it.
    """

    def __init__(self, calls: Sequence[TrainedCall], settings: LMPOSettings) -> None:
        self._calls = calls
        self._clip = settings.clip
        self._old: Sequence[torch.Tensor] | None = None
        if settings.old_logprobs == "engine":
            self._old = self._reported()
        self._surrogates: dict[int, Surrogate] = {}

    def __call__(self, row: int, logprobs: torch.Tensor) -> torch.Tensor:
        """Eq. 12 of call ``row``, given its log-probabilities ``[response]``, weighted as in Eq. 11."""
        call = self._calls[row]
        old = logprobs.detach() if self._old is None else self._old[row].to(logprobs.device)
        self._surrogates[row] = clipped_surrogate(logprobs, old, call.advantage, self._clip)
        return self._surrogates[row].loss.sum() * call.weight

    def keep(self, logprobs: Sequence[torch.Tensor]) -> None:
        """Take the first pass's log-probabilities as the old ones, unless the engine's are."""
        if self._old is None:
            self._old = logprobs

    def sampled(self) -> torch.Tensor:
        """What the engine reported of all sampled tokens, ``[tokens]``."""
        return torch.cat(self._reported())

    def last_pass(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Importance ratio and whether the clip took effect, ``[tokens]`` each."""
        found = [self._surrogates[row] for row in range(len(self._calls))]
        return torch.cat([each.ratio for each in found]), torch.cat([each.clipped for each in found])

    def _reported(self) -> list[torch.Tensor]:
        return [torch.tensor(call.step.logprobs) for call in self._calls]
