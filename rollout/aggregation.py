"""𝒜, the aggregator (LTS §2, M1-Parallel): a language model reads how every team ended and answers in a JSON field."""

from __future__ import annotations

import json
from collections.abc import Sequence

from data.task import Task
from rollout.admission import Ask
from rollout.prompt import load_prompts
from rollout.structure import JsonSchema
from rollout.teams_episode import TeamResult

AGGREGATE = JsonSchema(
    {
        "type": "object",
        "properties": {
            # Bounds, so that a reply ends before its token limit and is whole JSON (ours).
            "reason": {"type": "string", "maxLength": 400},
            "answer": {"type": "string", "maxLength": 600},
        },
        "required": ["reason", "answer"],
        "additionalProperties": False,
    }
)
NOBODY = -1


class AskedAggregate:
    """One call over all teams.

    Args:
        ask: calls the model.
        transcript_chars: how much of a team's transcript is shown, its end (ours).
    """

    def __init__(self, ask: Ask, transcript_chars: int = 4000) -> None:
        self._ask = ask
        self._chars = transcript_chars

    async def __call__(self, task: Task, results: Sequence[TeamResult]) -> str:
        """The ``answer`` field. Raises ``ValueError`` for a reply that is not the JSON that was asked for."""
        prompts = load_prompts("sharing")
        role = prompts.role("teams", "aggregator")
        teams = [
            role.fill(
                "team",
                number=str(result.team + 1),
                stop=result.stop.replace("_", " "),
                transcript=_transcript(result)[-self._chars :],
                answer=result.answer,
            )
            for result in results
        ]
        messages = role.messages("aggregate", question=task.question, teams="\n\n".join(teams))
        reply = await self._ask(NOBODY, prompts.agent("teams", "aggregator"), messages, AGGREGATE)
        return read_aggregate(reply, task.id)


def read_aggregate(reply: str, task_id: str) -> str:
    """The ``answer`` of an aggregator's JSON reply, a Markdown fence around it tolerated.

    Raises ``ValueError`` that names the task and shows the reply.
    """
    body = reply.strip().removeprefix("```json").removeprefix("```").removesuffix("```")
    try:
        answer = json.loads(body)["answer"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"task {task_id}: the aggregator did not answer in JSON with an answer: {reply!r}") from error
    return str(answer).strip()


def _transcript(result: TeamResult) -> str:
    return "\n".join(f"> {step.instruction}\n{step.output}" for step in result.steps)
