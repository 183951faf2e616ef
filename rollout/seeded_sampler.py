"""Sampling inside transformers' ``generate`` with one seed a row and no top-p or top-k."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch

from rollout.engine import Sampling


class SeededSampler:
    """A logits processor that turns greedy decoding into sampling with one generator a row.

    With E ~ Exponential(1) for every token, argmax(log p − log E) is an exact sample of p (the Gumbel-max trick,
    −log E being a Gumbel variable). At temperature 0 nothing is added, so the argmax stays.

    Attributes:
        first_step_at: ``time.perf_counter()`` when the first token was chosen, ``None`` before.
    """

    def __init__(self, samplings: Sequence[Sampling]) -> None:
        self._temperatures = [sampling.temperature for sampling in samplings]
        self._generators = [torch.Generator().manual_seed(sampling.seed) for sampling in samplings]
        self._logprobs: list[torch.Tensor] = []
        self.first_step_at: float | None = None

    def __call__(self, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """Logits ``[rows, vocabulary]`` to scores of the same shape whose argmax is the token to take."""
        scale = torch.tensor([temperature or 1.0 for temperature in self._temperatures], device=logits.device)
        scaled = logits.float() / scale[:, None]
        # log p is scaled minus a constant a row: the same argmax, but its rounding would blur the greedy one.
        scores = scaled + self._noise(scaled.shape[-1]).to(scaled.device)
        taken = scores.argmax(-1, keepdim=True)
        self._logprobs.append(torch.log_softmax(scaled, dim=-1).gather(-1, taken))
        self.first_step_at = self.first_step_at or time.perf_counter()
        return scores

    def logprobs(self) -> torch.Tensor:
        """log p of every token taken so far, at its row's temperature (greedy rows: at 1), ``[rows, steps]``."""
        return torch.cat(self._logprobs, dim=-1)

    def _noise(self, vocabulary: int) -> torch.Tensor:
        noise = torch.zeros(len(self._temperatures), vocabulary)
        for row, generator in enumerate(self._generators):
            if self._temperatures[row] > 0:
                noise[row] = -torch.empty(vocabulary).exponential_(generator=generator).log()
        return noise
