"""From episodes to advantages: which decision of which episode gets how much credit (LTS Eq. 6 to 8)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from lightning_modules.reinforce import ReinforceSettings, episode_returns, shaped_advantages
from rollout.teams_episode import TeamsEpisode


def decision_advantages(groups: Sequence[Sequence[TeamsEpisode]], settings: ReinforceSettings) -> list[torch.Tensor]:
    """Â_t of every decision, ``[T]`` an episode, group after group.

    Args:
        groups: the G episodes of each task.
    """
    r_agg = torch.tensor([[episode.score[settings.reward] for episode in group] for group in groups])
    r_first = torch.tensor([[episode.score_first[settings.reward] for episode in group] for group in groups])
    used = [[used_mask(episode, settings.used_by_other_team) for episode in group] for group in groups]
    returns = episode_returns(r_agg, r_first, settings.lambda_first)
    shaped = shaped_advantages(returns, used, settings.beta, settings.advantage_epsilon)
    return [each for group in shaped for each in group]


def used_mask(episode: TeamsEpisode, by_other_team: bool) -> torch.Tensor:
    """1[t ∈ U], ``[T]``."""
    used = episode.used(by_other_team)
    return torch.tensor([place in used for place in range(len(episode.admissions))], dtype=torch.bool)
