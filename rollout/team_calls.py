"""The model calls of one episode of teams: numbered by team, seeded, their tokens counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from data.bounds import check_at_least
from data.task import Task
from data.trajectory import Step
from memory.memory import Agent, Recall
from rollout.admission import Variant
from rollout.ask import question
from rollout.call import step_of
from rollout.counters import prompt_positions, sampled_tokens
from rollout.engine import (
    CallKey,
    Completion,
    Engine,
    EngineDiedError,
    EngineError,
    Request,
    Sampling,
    check_temperature,
)
from rollout.mas.mas import Message
from rollout.prompt import RenderedPrompt, prompt_text
from rollout.seeds import call_seed, retry_seed
from rollout.structure import Structure
from rollout.structured_answer import RETRY_TEMPERATURE

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class TeamSampling:
    """How teams sample.

    Attributes:
        temperature: above 0, for teams have equal prompts and differ by chance alone (M1-Parallel; the value is ours).
        max_tokens: response limit (ours).
        attempts: at a structured reply that the engine could not finish within the limit (ours).
    """

    temperature: float = 0.7
    max_tokens: int = 2048
    attempts: int = 3

    def __post_init__(self) -> None:
        check_at_least(1, "sampling", max_tokens=self.max_tokens, attempts=self.attempts)
        check_temperature("sampling.temperature", self.temperature)


@dataclass
class TeamCalls:
    """Implements :class:`rollout.admission.Ask`. A team's seeds depend on its own calls alone, whoever comes first.

    Attributes:
        seed: of the episode's run.
        teams: K. Call n of team t is number ``n (K + 1) + t + 1`` of the episode, the aggregator being team ``-1``: a
            place that does not depend on which team is faster.
        tokens: by team, read and written; ``-1`` for the aggregator's.
        steps: the calls that came back, in that order of coming.
    """

    engine: Engine
    tokenizer: PreTrainedTokenizerBase | None
    task: Task
    member: int
    seed: int
    variant: Variant
    teams: int
    sampling: TeamSampling
    tokens: Counter[int] = field(default_factory=Counter)
    steps: list[Step] = field(default_factory=list)
    _made: Counter[int] = field(default_factory=Counter)

    async def __call__(
        self, team: int, agent: Agent, messages: Sequence[Message], structure: Structure | None = None
    ) -> str:
        """One call. Raises :class:`EngineError` when it cannot be answered."""
        call = self._made[team]
        self._made[team] += 1
        seed = call_seed(self.seed, team, self.task.id, self.member, call)
        sampling = Sampling(self.sampling.temperature, self.sampling.max_tokens, seed)
        label = f"task {self.task.id}, team {team}, agent {agent.name}"
        speaker = agent if team < 0 else replace(agent, name=f"team{team}/{agent.name}")
        place = call * (self.teams + 1) + team + 1
        key = CallKey(teams_phase(self.variant), self.seed, self.task.id, self.member, place, speaker.name)
        request = replace(question(self.tokenizer, messages, sampling, structure, label), key=key)
        completion = await self._answer(request)
        self.tokens[team] += prompt_positions(request, completion) + sampled_tokens(completion)
        prompt = RenderedPrompt(prompt_text(messages), request.prompt_ids or (), ())
        self.steps.append(step_of(speaker, prompt, Recall(), request, completion))
        return spoken(completion.text)

    async def _answer(self, request: Request) -> Completion:
        """A structured reply that was cut short is sampled again under another seed."""
        for attempt in range(1, self.sampling.attempts if request.structure is not None else 1):
            try:
                return await self.engine.generate(request)
            except EngineDiedError:
                raise
            except EngineError:
                temperature = request.sampling.temperature or RETRY_TEMPERATURE
                again = replace(
                    request.sampling, temperature=temperature, seed=retry_seed(request.sampling.seed, attempt)
                )
                request = replace(request, sampling=again)
        return await self.engine.generate(request)


def teams_phase(variant: Variant) -> str:
    """The ``phase`` of a team's calls in the trace."""
    return f"teams/{variant}"


def spoken(text: str) -> str:
    """What a model that thinks aloud (Qwen3) says after its thoughts; all of any other text."""
    return text.rpartition("</think>")[2].lstrip() if "</think>" in text else text
