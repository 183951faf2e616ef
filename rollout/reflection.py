"""CoMem's two questions to an agent: what it learnt from its own trace, and what an entry was worth (section 3.2, 3.3).

The paper prints neither prompt: both are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Protocol

from data.trajectory import Trajectory
from memory.memory import Agent
from rollout.ask import Asker
from rollout.mas.mas import Message
from rollout.structure import JsonSchema
from rollout.world import POSSIBLE


class Distil(Protocol):
    """The reflection of section 3.2: an agent's trace to a few insights."""

    async def distil(self, asker: Asker, agent: Agent, trajectory: Trajectory, label: str) -> tuple[str, ...]:
        """Insights, best first; none when nothing could be said."""
        ...


class Judge(Protocol):
    """LLM_a(m): what an agent thinks of a collective entry that it was given."""

    async def judge(self, asker: Asker, agent: Agent, insight: str, trajectory: Trajectory, label: str) -> float | None:
        """In [0, L_max]; ``None`` when there is no readable judgement."""
        ...


class LLMDistiller:
    """Asks the run's own model, in the agent's role.

    Args:
        max_insights: that are asked for (ours).
        max_tokens: of a reply (ours); it bounds the length of each insight too.
        trace_chars: the end of the trace that is shown (ours).
    """

    def __init__(self, max_insights: int = 3, max_tokens: int = 512, trace_chars: int = 6000) -> None:
        self.max_insights = max_insights
        self.max_tokens = max_tokens
        self.trace_chars = trace_chars

    async def distil(self, asker: Asker, agent: Agent, trajectory: Trajectory, label: str) -> tuple[str, ...]:
        """Insights that the agent's model writes about the agent's own calls."""
        trace = agent_trace(trajectory, agent)[-self.trace_chars :]
        text = DISTIL.format(
            task=trajectory.task.question, trace=trace, outcome=outcome(trajectory), count=self.max_insights
        )
        messages = (Message("system", agent.profile), Message("user", text))
        schema = insights_schema(self.max_insights, self.max_tokens)
        found = await asker.ask_json(messages, schema, read_insights, self.max_tokens, label)
        return (found or ())[: self.max_insights]


class LLMJudge:
    """Asks the run's own model, in the role of an agent that read the entry.

    Args:
        l_max: L_max, the highest judgement (ours); the same as the memory's ``settings.l_max``.
        max_tokens: of a reply (ours).
        trace_chars: the end of the trace that is shown (ours).
    """

    def __init__(self, l_max: int = 10, max_tokens: int = 16, trace_chars: int = 2000) -> None:
        self.l_max = l_max
        self.max_tokens = max_tokens
        self.trace_chars = trace_chars

    async def judge(self, asker: Asker, agent: Agent, insight: str, trajectory: Trajectory, label: str) -> float | None:
        """A whole number from 0 to ``l_max``."""
        trace = agent_trace(trajectory, agent)[-self.trace_chars :]
        text = JUDGE.format(
            task=trajectory.task.question, trace=trace, outcome=outcome(trajectory), insight=insight, best=self.l_max
        )
        messages = (Message("system", agent.profile), Message("user", text))
        return await asker.ask_json(messages, score_schema(self.l_max), self._read, self.max_tokens, label)

    def _read(self, value: object) -> float | None:
        score = value.get("score") if isinstance(value, dict) else None
        fits = isinstance(score, (int, float)) and not isinstance(score, bool) and 0 <= score <= self.l_max
        return float(score) if fits and score is not None else None


DISTIL = """\
The task was: {task}

What you saw and did:
{trace}

How it ended: {outcome}.

Look back at your own part. Write at most {count} short lessons that would help you with other tasks of this kind, from
what went well and from what went wrong. One plain sentence each.
Reply with JSON: {{"insights": ["..."]}}"""

JUDGE = """\
The task was: {task}

What you saw and did:
{trace}

How it ended: {outcome}.

Before you began you were given this advice: {insight}

How useful is this advice for tasks of this kind? 0 is useless or misleading, {best} could not be better.
Reply with JSON: {{"score": 0}}"""

JSON_FRAME = 16
"""Tokens that the reply's brackets, quotes and key take at most (ours)."""


def insights_schema(count: int, max_tokens: int) -> JsonSchema:
    """One to ``count`` texts that fit into ``max_tokens`` whatever they are.

    A small model finds the end of none by itself, and what it repeats until then takes a token a character.
    """
    longest = max(1, (max_tokens - JSON_FRAME) // count)
    text = {"type": "string", "minLength": 1, "maxLength": longest}
    insights = {"type": "array", "items": text, "minItems": 1, "maxItems": count}
    return JsonSchema(
        {
            "type": "object",
            "properties": {"insights": insights},
            "required": ["insights"],
            "additionalProperties": False,
        }
    )


def score_schema(l_max: int) -> JsonSchema:
    """``{"score": 0 … l_max}``, as a list of the numbers: every engine can hold a reply to that."""
    score = {"type": "integer", "enum": list(range(l_max + 1))}
    return JsonSchema(
        {"type": "object", "properties": {"score": score}, "required": ["score"], "additionalProperties": False}
    )


def read_insights(value: object) -> tuple[str, ...] | None:
    """The texts under ``insights``, or a bare list of texts; ``None`` for anything else."""
    items = value.get("insights") if isinstance(value, dict) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        return None
    return tuple(item.strip() for item in items if item.strip())


def agent_trace(trajectory: Trajectory, agent: Agent) -> str:
    """τ_i: the agent's own calls, what was new in each prompt and what it said, and nobody else's calls.

    In a world every prompt holds the rules and the latest turns again: only what the one before did not say is shown,
    which is what the last action led to. Lists of possible actions are not, they would crowd out everything else.
    """
    lines: list[str] = []
    before = [*agent.profile.splitlines(), *trajectory.task.question.splitlines()]
    for step in trajectory.steps:
        if step.agent == agent.name:
            shown = _without_choices(step.prompt)
            new = "\n".join(_new_lines(before, shown))
            lines += [f"you read: {new}"] if new else []
            lines.append(f"you said: {step.output.strip()}")
            before = shown
    return "\n".join(lines)


def _without_choices(prompt: str) -> list[str]:
    paragraphs = [each for each in prompt.split("\n\n") if not each.startswith(POSSIBLE)]
    return [line for each in paragraphs for line in each.splitlines() if line.strip()]


def _new_lines(before: Sequence[str], now: Sequence[str]) -> list[str]:
    changes = SequenceMatcher(None, before, now, autojunk=False).get_opcodes()
    return [line for tag, _, _, start, stop in changes if tag != "equal" for line in now[start:stop]]


def outcome(trajectory: Trajectory) -> str:
    """Every score by name, in words."""
    return ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in trajectory.score.items())
