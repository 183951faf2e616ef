"""What a multi-agent system did on one task, down to the token ids that were sampled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from data.plain import plain, task_from_plain
from data.task import Score, Task


@dataclass(frozen=True)
class Cost:
    """What one agent call consumed. Times are seconds of wall clock; ``None`` where the engine does not tell."""

    prompt_tokens: int
    completion_tokens: int
    latent_tokens: int
    cached_tokens: int | None
    wall_s: float
    first_token_s: float | None
    queue_s: float | None
    retries: int = 0


@dataclass(frozen=True)
class Step:
    """One agent call: (α_j, p_j, o_j) of the paper's τ, with everything a trainer needs to score it again.

    Attributes:
        agent: the agent's name within its MAS, unique there.
        role: the role whose profile γ the composer reads.
        prompt: the user-visible prompt text p_j, without the chat template.
        output: the decoded response o_j.
        prefix_ids: prompt tokens before the place where latents are injected.
        suffix_ids: prompt tokens after it (empty when latents follow the generation prompt).
        output_ids: the sampled token ids, end-of-turn token included when it was sampled.
        logprobs: the engine's log-probability of each sampled token, at the sampling temperature.
        finish_reason: ``stop`` or ``length``.
        entry_ids: memory entries that were injected.
        call: place within the episode in the order in which calls were made; calls that were broken off leave gaps.
    """

    agent: str
    role: str
    prompt: str
    output: str
    prefix_ids: tuple[int, ...]
    suffix_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: str
    entry_ids: tuple[str, ...]
    cost: Cost
    call: int = 0


@dataclass(frozen=True)
class Trajectory:
    """τ of one episode. ``member`` is its place in the group of G trajectories of one task.

    Attributes:
        answer: the final answer; where a world was acted in, the actions taken, one a line.
        failure: why the episode did not come to its end (:mod:`rollout.failure`), ``None`` for one that did.
        wall_s: seconds of wall clock from its first call to its score. Two runs are equal whatever they took.
    """

    task: Task
    mas: str
    member: int
    steps: tuple[Step, ...]
    answer: str
    score: Score
    failure: str | None = None
    wall_s: float = field(default=0.0, compare=False)


def trajectory_text(trajectory: Trajectory) -> str:
    """The trajectory as plain text: the question, then ``agent: output`` a line.

    This is what is embedded for retrieval, what the composer reads, and what the text baseline injects.
    """
    lines = [f"Question: {trajectory.task.question}"]
    lines += [f"{step.agent}: {step.output.strip()}" for step in trajectory.steps]
    return "\n".join(lines)


def trajectory_to_dict(trajectory: Trajectory) -> dict[str, Any]:
    """JSON values only, so that it survives a checkpoint loaded with ``weights_only=True``."""
    state: dict[str, Any] = plain(asdict(trajectory))
    return state


def trajectory_from_dict(state: Mapping[str, Any]) -> Trajectory:
    """The inverse of :func:`trajectory_to_dict`."""
    return Trajectory(
        task=task_from_plain(state["task"]),
        mas=str(state["mas"]),
        member=int(state["member"]),
        steps=tuple(_step_from_dict(step) for step in state["steps"]),
        answer=str(state["answer"]),
        score=dict(state["score"]),
        failure=state["failure"],
        wall_s=float(state["wall_s"]),
    )


def _step_from_dict(state: Mapping[str, Any]) -> Step:
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in state.items()}
    values["cost"] = Cost(**values["cost"])
    return Step(**values)
