"""The learned variant of :class:`rollout.admission.Admission`: the controller decides, sampling or greedily."""

from __future__ import annotations

import random
import time

import torch

from data.task import Task
from lightning_modules.backbone import Backbone
from lightning_modules.controller import Controller, DecisionCache
from lightning_modules.phi import Phi
from rollout.admission import Candidate, Verdict
from rollout.seeds import call_seed


class ControllerAdmission:
    """One episode's decisions.

    Args:
        phi: embeds what the controller reads; shared between episodes, so that a text is embedded once.
        temperature: of sampling (paper: 1.2 in training); 0 is greedy (paper: at evaluation).
        rng: of sampling.
    """

    def __init__(
        self,
        backbone: Backbone,
        controller: Controller,
        phi: Phi,
        task: Task,
        temperature: float,
        rng: random.Random,
    ) -> None:
        self._backbone = backbone
        self._controller = controller
        self._phi = phi
        self._question = task.question
        self._temperature = temperature
        self._rng = rng
        self._decisions: DecisionCache | None = None

    async def decide(self, candidate: Candidate) -> Verdict:
        """z_t ~ softmax(ℓ_t / T), or the larger of the two. The first one also embeds the query, and takes its time."""
        started = time.perf_counter()
        if self._decisions is None:
            self._decisions = DecisionCache(self._backbone, self._controller, self._phi([self._question])[0])
        step = self._phi([candidate.instruction, candidate.summary, candidate.output])
        keys = self._phi(candidate.keys) if candidate.keys else step[:0]
        logits = self._decisions.logits(keys, step)
        yes = float(torch.softmax(logits / (self._temperature or 1.0), dim=-1)[0])
        admit = self._rng.random() < yes if self._temperature else yes > 0.5
        return Verdict(admit, yes, time.perf_counter() - started)


def decision_rng(seed: int, epoch: int, task: Task, member: int) -> random.Random:
    """The stream that an episode's decisions are sampled from."""
    return random.Random(call_seed(seed, epoch, f"controller/{task.id}", member, 0))
