"""The scripted world of :mod:`eval.comem_simulation`: insights whose worth is known, and agents that depend on it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from data.task import Task
from memory.encoder import Vectors
from memory.memory import Agent

ROLES = ("scout", "planner", "actor", "checker")
AGENTS = tuple(Agent(role, role, f"You are the {role}.") for role in ROLES)
HABITS = tuple(f"habit{n}" for n in range(12))


@dataclass(frozen=True)
class Rules:
    """Every assumption, as a number."""

    topics: int = 10
    base: float = 0.45
    help: float = 0.40
    harm: float = 0.35
    good_after_success: float = 0.5
    good_after_failure: float = 0.2
    lessons: int = 3
    judged_good: float = 7.5
    judged_bad: float = 3.5
    judge_noise: float = 1.5
    steered: float = 0.7


@dataclass(frozen=True)
class Played:
    """What the agents made of one task."""

    reward: float
    actions: Mapping[str, tuple[str, ...]]
    insights: Mapping[str, tuple[str, ...]]


def is_proven_good(content: str) -> bool:
    """Whether an insight helps whoever reads it."""
    return " for everyone " in content


def helps(content: str, agent: str) -> bool:
    """Whether an insight helps this agent."""
    return is_proven_good(content) or f" for {agent} " in content


class TopicEncoder:
    """Scripted embeddings: texts on one topic lie around one centre, each at a place of its own."""

    name = "scripted-topics"

    def __init__(self, dim: int = 64, spread: float = 0.7) -> None:
        self.dim = dim
        self.spread = spread

    def encode(self, texts: Sequence[str]) -> Vectors:
        """``[len(texts), dim]`` unit vectors, a pure function of each text."""
        rows = [self._draw(text.split(":")[0], 1.0) + self._draw(text, self.spread) for text in texts]
        matrix = np.asarray(rows, dtype=np.float32).reshape(len(texts), self.dim)
        return np.asarray(matrix / np.linalg.norm(matrix, axis=1, keepdims=True), dtype=np.float32)

    def _draw(self, text: str, length: float) -> Vectors:
        vector = np.random.default_rng(list(text.encode())).normal(size=self.dim)
        return np.asarray(length * vector / np.linalg.norm(vector), dtype=np.float32)


class ScriptedWorld:
    """A pure function of (seed, episode, what was injected)."""

    def __init__(self, seed: int, rules: Rules = Rules()) -> None:
        self.seed = seed
        self.rules = rules

    def task(self, index: int) -> Task:
        """The ``index``-th task of the stream, the same for every memory."""
        topic = self._random(index, "task").randrange(self.rules.topics)
        return Task(f"s{index}", f"topic {topic}: a task", (), "simulation")

    def play(self, index: int, injected: Mapping[str, Sequence[str]]) -> Played:
        """Every agent does its part, acts, and writes one insight."""
        topic = self.task(index).question.split(":")[0]
        parts, actions, insights = [], {}, {}
        for agent in ROLES:
            draw = self._random(index, agent)
            succeeded = draw.random() < self.chance(agent, topic, injected[agent])
            parts.append(succeeded)
            actions[agent] = (self._action(draw, agent, injected[agent]),)
            insights[agent] = (self._insight(draw, agent, topic, succeeded),)
        return Played(sum(parts) / len(parts), actions, insights)

    def chance(self, agent: str, topic: str, injected: Sequence[str]) -> float:
        """Of success in ``agent``'s part: help from any good insight on the topic, harm from the share of bad ones."""
        useful = any(helps(text, agent) and text.startswith(f"{topic}:") for text in injected)
        bad = sum(not helps(text, agent) for text in injected) / len(injected) if injected else 0.0
        return min(1.0, max(0.0, self.rules.base + self.rules.help * useful - self.rules.harm * bad))

    def judge(self, index: int, agent: str, content: str) -> float:
        """LLM_a(m) in [0, 10]: the truth, noisily."""
        draw = self._random(index, f"judge {agent} {content}")
        centre = self.rules.judged_good if helps(content, agent) else self.rules.judged_bad
        return min(10.0, max(0.0, draw.gauss(centre, self.rules.judge_noise)))

    def misleading(self, injected: Mapping[str, Sequence[str]]) -> float:
        """The share of injected insights that hurt their reader; 0 when nothing was injected."""
        hurt = [not helps(text, agent) for agent, texts in injected.items() for text in texts]
        return sum(hurt) / len(hurt) if hurt else 0.0

    def _action(self, draw: random.Random, agent: str, injected: Sequence[str]) -> str:
        if injected and draw.random() < self.rules.steered:
            return draw.choice(list(injected)).rsplit(" ", 1)[-1]
        place = 3 * ROLES.index(agent)
        return draw.choice(HABITS[place : place + 3])

    def _insight(self, draw: random.Random, agent: str, topic: str, succeeded: bool) -> str:
        chance = self.rules.good_after_success if succeeded else self.rules.good_after_failure
        if draw.random() >= chance:
            return f"{topic}: misleading advice {draw.randrange(10**9)} {draw.choice(HABITS)}"
        reader = "everyone" if draw.random() < 0.5 else agent
        lesson = draw.randrange(self.rules.lessons)
        return f"{topic}: lesson {lesson} for {reader} {self._habit(reader, lesson)}"

    @staticmethod
    def _habit(reader: str, lesson: int) -> str:
        """A role's own lessons name its own habits."""
        place = 3 * ROLES.index(reader) if reader in ROLES else 4 * lesson
        return HABITS[(place + lesson) % len(HABITS)]

    def _random(self, index: int, what: str) -> random.Random:
        return random.Random(f"{self.seed} {index} {what}")
