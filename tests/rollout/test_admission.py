"""The prompted variants, the summary and the aggregate over scripted replies: what is asked, how replies are read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from data.task import Task
from memory.memory import Agent
from rollout.admission import AddAll, AskedAdmission, AskedSummary, Candidate, asked_admission
from rollout.aggregation import AGGREGATE, AskedAggregate, read_aggregate
from rollout.mas.mas import Message
from rollout.structure import Choices, Structure
from rollout.teams_episode import TeamResult, TeamStep

CANDIDATE = Candidate("Q?", ("first key", "second key"), 1, 3, "Open it.", "Opened it.", "It says 7.", "my context")


class Replies:
    """Answers with one text and notes what it was asked."""

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.asked: list[tuple[int, str, str, Structure | None]] = []

    async def __call__(
        self, team: int, agent: Agent, messages: Sequence[Message], structure: Structure | None = None
    ) -> str:
        self.asked.append((team, agent.role, messages[-1].content, structure))
        return self.reply


@pytest.mark.parametrize(("reply", "admit"), [("YES", True), ("NO", False), (" yes.\n", True), ("nonsense", False)])
def test_a_prompted_decision(reply: str, admit: bool) -> None:
    ask = Replies(reply)
    verdict = asyncio.run(AskedAdmission(ask, "gatekeeper").decide(CANDIDATE))
    assert (verdict.admit, verdict.probability) == (admit, None)
    team, role, prompt, structure = ask.asked[0]
    assert (team, role, structure) == (1, "gatekeeper", Choices(("YES", "NO")))
    for text in ("Q?", "- first key\n- second key", "Open it.", "Opened it.", "It says 7."):
        assert text in prompt


def test_only_the_orchestrator_reads_the_teams_context() -> None:
    prompts = []
    for role in ("gatekeeper", "orchestrator"):
        ask = Replies("YES")
        asyncio.run(AskedAdmission(ask, role).decide(CANDIDATE))
        prompts.append(ask.asked[0][2])
    assert ["my context" in prompt for prompt in prompts] == [False, True]


def test_variants_by_name() -> None:
    ask = Replies("YES")
    assert asked_admission("none", ask) is None
    assert isinstance(asked_admission("add_all", ask), AddAll)
    assert isinstance(asked_admission("llm", ask), AskedAdmission)
    assert isinstance(asked_admission("orchestrator", ask), AskedAdmission)
    for variant in ("lts", "everything"):
        with pytest.raises(ValueError, match="none, add_all, llm, orchestrator"):
            asked_admission(variant, ask)  # type: ignore[arg-type]


def test_add_all_asks_nobody() -> None:
    ask = Replies("NO")
    admission = asked_admission("add_all", ask)
    assert admission is not None
    assert asyncio.run(admission.decide(CANDIDATE)).admit
    assert ask.asked == []


def test_a_summary_is_one_line_of_the_length_asked_for() -> None:
    ask = Replies("Opened it\n and read 7. ")
    assert asyncio.run(AskedSummary(ask, (45, 50))(2, "Open it.", "It says 7.")) == "Opened it and read 7."
    team, role, prompt, structure = ask.asked[0]
    assert (team, role, structure) == (2, "summariser", None)
    assert "In 45 to 50 words" in prompt
    assert "It says 7." in prompt


def test_a_summary_that_does_not_end_is_cut_at_twice_its_length() -> None:
    summary = asyncio.run(AskedSummary(Replies("word " * 500), (15, 20))(0, "Open it.", "It says 7."))
    assert summary.split() == ["word"] * 40


def test_the_aggregator_reads_every_team_and_answers_in_a_field() -> None:
    ask = Replies('{"reason": "two agree", "answer": " 7 "}')
    results = [
        TeamResult(0, "7", "answered", 1.0, 0, (TeamStep("Open it.", "x" * 5000 + " It says 7."),)),
        TeamResult(1, "", "step_limit", 2.0, 0, ()),
    ]
    task = Task("t", "Which number?", ("7",), "test")
    assert asyncio.run(AskedAggregate(ask, transcript_chars=100)(task, results)) == "7"
    _, role, prompt, structure = ask.asked[0]
    assert (role, structure) == ("aggregator", AGGREGATE)
    for text in ("Which number?", "Team 1, which stopped because: answered", "It says 7.", "because: step limit"):
        assert text in prompt
    assert "x" * 101 not in prompt


@pytest.mark.parametrize("reply", ['```json\n{"reason": "", "answer": 7}\n```', '{"answer": "7"}'])
def test_an_aggregate_may_stand_in_a_fence(reply: str) -> None:
    assert read_aggregate(reply, "t") == "7"


@pytest.mark.parametrize("reply", ["7", "{}", "[1]", '{"answer": '])
def test_an_aggregate_that_is_none_is_refused(reply: str) -> None:
    with pytest.raises(ValueError, match="task t: the aggregator did not answer in JSON"):
        read_aggregate(reply, "t")
