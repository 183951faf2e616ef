"""Admission control (LTS §3.2): is this step worth sharing? One seam for every way to decide; ``None`` shares nothing.

none           no bank, no summaries, no decisions: M1-Parallel (K = 3), MagenticOne (K = 1)
add_all        every step
llm            a stateless call of a language model
orchestrator   the orchestrator itself, with its own context
lts            the learned controller: :mod:`lightning_modules.controller_admission`
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

from memory.memory import Agent
from rollout.mas.mas import Message
from rollout.prompt import load_prompts
from rollout.structure import Choices, Structure

Variant = Literal["none", "add_all", "llm", "orchestrator", "lts"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)

YES, NO = "YES", "NO"


@dataclass(frozen=True)
class Candidate:
    """One step up for admission.

    Attributes:
        question: the task's.
        keys: s_1 … s_M as the bank stands.
        team, step: whose step it is.
        instruction: u_t, what the agent was told.
        summary: s_t, which would be the key.
        output: o_t, which would be the value.
        context: what the team's orchestrator has before it; read by ``orchestrator`` alone.
    """

    question: str
    keys: tuple[str, ...]
    team: int
    step: int
    instruction: str
    summary: str
    output: str
    context: str = ""


@dataclass(frozen=True)
class Verdict:
    """z_t, π(YES | c_t) where there is one, and the seconds of wall clock that it took to decide."""

    admit: bool
    probability: float | None = None
    wall_s: float = 0.0


class Admission(Protocol):
    """Decides for one episode; made anew for each, so that it may keep what it computed."""

    async def decide(self, candidate: Candidate) -> Verdict:
        """Admit or not. Called once a step, in the order in which steps end."""
        ...


class Ask(Protocol):
    """One call of a language model for team ``team``, ``-1`` for none: the same shape as an agent call."""

    def __call__(
        self, team: int, agent: Agent, messages: Sequence[Message], structure: Structure | None = None
    ) -> Awaitable[str]:
        """The reply."""
        ...


Summarise = Callable[[int, str, str], Awaitable[str]]
"""(team, u_t, o_t) to s_t."""


class AddAll:
    """LTS-AddAll."""

    async def decide(self, candidate: Candidate) -> Verdict:
        """Yes."""
        return Verdict(True)


class AskedAdmission:
    """LTS-LLM and the orchestrator's own decision (paper, Table 7): a prompted YES or NO.

    Args:
        ask: calls the model.
        role: ``gatekeeper`` sees the candidate alone, ``orchestrator`` also the team's context.
    """

    def __init__(self, ask: Ask, role: Literal["gatekeeper", "orchestrator"]) -> None:
        self._ask = ask
        self._role = role

    async def decide(self, candidate: Candidate) -> Verdict:
        """One call, held to the two words."""
        prompts = load_prompts("sharing")
        values = {
            "question": candidate.question,
            "instruction": candidate.instruction,
            "summary": candidate.summary,
            "output": candidate.output,
            "keys": "\n".join(f"- {key}" for key in candidate.keys) or "(none yet)",
        }
        if self._role == "orchestrator":
            values["context"] = candidate.context
        messages = prompts.role("teams", self._role).messages("decide", **values)
        started = time.perf_counter()
        reply = await self._ask(candidate.team, prompts.agent("teams", self._role), messages, Choices((YES, NO)))
        return Verdict(reply.strip().upper().startswith(YES), wall_s=time.perf_counter() - started)


class AskedSummary:
    """s_t by a stateless call (LTS §4.3), cut at twice its length (ours): every orchestrator reads it before each step.

    Args:
        ask: calls the model.
        words: from and to (paper: 15 to 20; its robustness study 45 to 50).
    """

    def __init__(self, ask: Ask, words: tuple[int, int] = (15, 20)) -> None:
        self._ask = ask
        self._words = words

    async def __call__(self, team: int, instruction: str, output: str) -> str:
        """The purpose and outcome of a step in one sentence."""
        prompts = load_prompts("sharing")
        low, high = map(str, self._words)
        messages = prompts.role("teams", "summariser").messages(
            "summarise", instruction=instruction, output=output, low=low, high=high
        )
        reply = await self._ask(team, prompts.agent("teams", "summariser"), messages)
        return " ".join(reply.split()[: 2 * self._words[1]])


def asked_admission(variant: Variant, ask: Ask) -> Admission | None:
    """The admission of every variant that learns nothing.

    Raises ``ValueError`` for ``lts``, which needs a controller, and for an unknown variant.
    """
    if variant == "none":
        return None
    if variant == "add_all":
        return AddAll()
    if variant in ("llm", "orchestrator"):
        return AskedAdmission(ask, "gatekeeper" if variant == "llm" else "orchestrator")
    raise ValueError(f"variant is {variant!r}; without a controller there are {', '.join(VARIANTS[:-1])}")
