"""K MagenticOne teams with tools, bank, decider and aggregator, end to end on a scripted engine."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from transformers import PreTrainedTokenizerBase

from data.assistantbench import AssistantBench
from data.task import Task
from rollout.admission import Admission, Candidate, Variant, Verdict
from rollout.engine import EngineDiedError, EngineError, Request
from rollout.magentic_teams import MagenticTeams, chat_tokenizer
from rollout.mas.magentic_one.magentic_one import MagenticOne
from rollout.mas.mas import Message
from rollout.replay_engine import ReplayEngine
from rollout.structure import Choices
from rollout.team_calls import TeamCalls, TeamSampling, spoken, teams_phase
from rollout.team_measures import measure
from rollout.teams_episode import TeamsEpisode, traced
from rollout.tools.task_tools import TaskTools
from rollout.trace import TracedCall, TracedEpisode, TraceWriter
from rollout.trace_reader import read_trace
from tests.rollout.magentic_one.scripted_team import asked_for, ledger
from tests.rollout.transcript import Call
from tests.rollout.watched_engine import WatchedEngine

BENCHMARK = AssistantBench(source="sample")
TASK = BENCHMARK.tasks("train")[0]
CORPUS = Path("data/sample/corpus.jsonl")


def call_of(request: Request) -> Call:
    """The request as the MAS made it; its agent is named in the label."""
    assert request.messages is not None
    name = request.label.rpartition(" ")[2]
    agent = next(each for each in MagenticOne(lambda task: {}).agents("web") if each.name == name)
    return Call(agent, request.messages[-1].content, request.messages, request.structure)


def team_of(request: Request) -> int:
    return int(request.label.split(", team ")[1].split(",")[0])


def reply(request: Request) -> str:
    """Search, then open the page unless the bank has it already, then answer."""
    assert request.messages is not None
    text = request.messages[-1].content
    if "In 15 to 20 words" in text or "In 45 to 50 words" in text:
        return "opened the page on gyms" if "open_page" in text else "searched for gyms"
    if isinstance(request.structure, Choices):
        return "YES" if "open_page(" in text.partition("Result:")[2] else "NO"
    if "Weigh the teams' answers" in text:
        return json.dumps({"reason": "all agree", "answer": "Riverside Gym\nThe Yard"})
    call = call_of(request)
    kind = asked_for(call)
    if kind == "select":
        wanted = [number for number in (1, 2, 3) if f"{number}. opened the page" in text]
        return json.dumps({"reason": "saves a step", "wanted": wanted[:1]})
    if kind == "ledger":
        return ledger("web", done="open_page(" in text, say="find the gyms")
    if kind == "web":
        if "https://example.org/linden/gyms" in text:
            return json.dumps({"tool": "open_page", "arguments": {"url": "https://example.org/linden/gyms"}})
        return json.dumps({"tool": "search", "arguments": {"query": "gyms in Linden"}})
    return "Riverside Gym\nThe Yard" if kind == "answer" else f"some {kind}"


def teams_on(engine: WatchedEngine, **settings: Any) -> MagenticTeams:
    mas = MagenticOne(TaskTools(corpus=CORPUS, python=False, max_characters=400, results=2))
    return MagenticTeams(mas, engine, "smollm2-135m-instruct", BENCHMARK, **settings)


def episode(variant: Variant, engine: WatchedEngine | None = None, **settings: Any) -> TeamsEpisode:
    teams = teams_on(engine or WatchedEngine(ReplayEngine(script=reply)), **settings)
    return asyncio.run(teams.episode(TASK, 0, 7, variant))


def test_three_teams_without_sharing() -> None:
    engine = WatchedEngine(ReplayEngine(script=reply), delays=4)
    played = episode("none", engine)
    assert [result.answer for result in played.results] == ["Riverside Gym\nThe Yard"] * 3
    assert played.score["accuracy"] == played.score_first["accuracy"] == 1.0
    assert [len(result.steps) for result in played.results] == [2, 2, 2]
    assert played.results[0].steps[1].output.startswith('open_page({"url": "https://example.org/linden/gyms"})\nGyms')
    assert not played.admissions
    assert not played.entries
    assert not played.simulated
    assert engine.most_in_flight == 3


def test_one_team_is_magentic_one() -> None:
    assert [result.stop for result in episode("none", teams=1).results] == ["answered"]


@pytest.mark.parametrize(("variant", "saved"), [("add_all", 100.0), ("llm", 50.0), ("orchestrator", 50.0)])
def test_who_decides(variant: Variant, saved: float) -> None:
    played = episode(variant)
    figures = measure([played], "accuracy")
    assert figures.score == 1.0
    assert figures.saved is not None
    if variant == "add_all":
        assert figures.saved == saved
    else:
        assert {entry.key for entry in played.entries} == {"opened the page on gyms"}
    assert all(step.summary for step in played.admissions)


def test_a_team_that_is_late_takes_what_was_shared_and_saves_its_steps() -> None:
    class Late(WatchedEngine):
        async def generate(self, request: Request) -> Any:
            if team_of(request) == 2:
                for _ in range(60):
                    await asyncio.sleep(0)
            return await super().generate(request)

    played = episode("llm", Late(ReplayEngine(script=reply)))
    assert [use.team for use in played.uses if use.team == 2] == [2]
    assert len(played.results[2].steps) < 2
    assert played.used()
    assert played.score["accuracy"] == 1.0


def test_the_orchestrator_decides_with_its_context_and_the_gatekeeper_without() -> None:
    for variant, knows in (("orchestrator", True), ("llm", False)):
        engine = WatchedEngine(ReplayEngine(script=reply))
        episode(cast(Variant, variant), engine)
        asked = [request.messages[-1].content for request in engine.asked if isinstance(request.structure, Choices)]  # type: ignore[index]
        assert asked
        assert all(("some plan" in text) is knows for text in asked)


def test_the_controller_decides_in_lts() -> None:
    seen: list[Candidate] = []

    class Controller:
        async def decide(self, candidate: Candidate) -> Verdict:
            seen.append(candidate)
            return Verdict(True, 0.75, 0.001)

    def make(task: Task, member: int) -> Admission:
        assert (task, member) == (TASK, 0)
        return Controller()

    played = asyncio.run(teams_on(WatchedEngine(ReplayEngine(script=reply))).episode(TASK, 0, 7, "lts", make))
    assert len(seen) == len(played.admissions)
    assert {step.probability for step in played.admissions} == {0.75}
    with pytest.raises(ValueError, match="the variant lts needs a controller"):
        episode("lts")


def test_the_length_of_summaries_is_a_setting() -> None:
    for summary, words in (("short", "In 15 to 20 words"), ("long", "In 45 to 50 words")):
        engine = WatchedEngine(ReplayEngine(script=reply))
        episode("add_all", engine, summary=summary, teams=1)
        assert any(words in request.messages[-1].content for request in engine.asked if request.messages)


def test_seeds_do_not_depend_on_who_comes_first() -> None:
    def seeds(delays: int, shuffle: int) -> dict[int, list[int]]:
        engine = WatchedEngine(ReplayEngine(script=reply), delays=delays, seed=shuffle)
        episode("none", engine)
        found: dict[int, list[int]] = {}
        for request in engine.asked:
            found.setdefault(team_of(request), []).append(request.sampling.seed)
        return found

    assert seeds(1, 0) == seeds(9, 1) == seeds(9, 2)
    everything = [seed for own in seeds(1, 0).values() for seed in own]
    assert len(set(everything)) == len(everything)


def test_tokens_of_a_teams_summaries_count_as_its_own() -> None:
    """Without a tokenizer the replay engine's tokens are bytes and an end-of-turn."""
    engine = WatchedEngine(ReplayEngine(script=reply))
    played = episode("add_all", engine, teams=1)
    own = [request for request in engine.asked if team_of(request) == 0]
    assert played.results[0].tokens == sum(request.length + len(reply(request).encode()) + 1 for request in own)
    assert len(own) == len(engine.asked) - 1  # the aggregator's call is nobody's


def test_the_step_limit() -> None:
    played = episode("none", max_steps=1)
    assert {(result.stop, len(result.steps)) for result in played.results} == {("step_limit", 1)}


def test_close_stops_the_engine() -> None:
    engine = WatchedEngine(ReplayEngine(script=reply))
    asyncio.run(teams_on(engine).close())
    assert (engine.starts, engine.closes) == (0, 1)


def test_a_call_that_cannot_be_answered_costs_its_team_alone() -> None:
    engine = WatchedEngine(ReplayEngine(script=reply), fails=lambda request: team_of(request) == 1)
    played = episode("none", engine)
    assert [result.stop for result in played.results] == ["answered", "failed", "answered"]
    assert "engine: " in (played.results[1].failure or "")
    assert played.results[0].tokens > 0
    assert played.score["accuracy"] == 1.0
    figures = measure([played], "accuracy")
    assert (figures.failed, figures.failed_teams) == (0, 1)


def test_a_dead_engine_ends_the_run() -> None:
    engine = WatchedEngine(
        ReplayEngine(script=reply), fails=lambda request: team_of(request) == 1, error=EngineDiedError
    )
    with pytest.raises(EngineDiedError):
        episode("none", engine)


def test_an_aggregator_that_writes_no_json_leaves_no_aggregate() -> None:
    def wordy(request: Request) -> str:
        assert request.messages is not None
        return "none" if "Weigh the teams' answers" in request.messages[-1].content else reply(request)

    played = episode("none", WatchedEngine(ReplayEngine(script=wordy)))
    assert "the aggregator did not answer in JSON" in (played.failure or "")
    assert (played.score["accuracy"], played.score_first["accuracy"]) == (0.0, 1.0)


@dataclass
class Failing(WatchedEngine):
    """Fails the first so many times."""

    left: int = 0
    seeds: list[int] = field(default_factory=list)

    async def generate(self, request: Request) -> Any:
        self.seeds.append(request.sampling.seed)
        if self.left:
            self.left -= 1
            raise self.error("cut short")
        return await super().generate(request)


def ask(engine: WatchedEngine, structure: Choices | None, tokenizer: PreTrainedTokenizerBase) -> str:
    calls = TeamCalls(engine, tokenizer, TASK, 0, 7, "none", 1, TeamSampling(attempts=3))
    agent = MagenticOne(lambda task: {}).agents("web")[0]
    return asyncio.run(calls(0, agent, [Message("user", "say YES")], structure))


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return chat_tokenizer("smollm2-135m-instruct")


def test_a_structured_reply_that_was_cut_is_sampled_again(tokenizer: PreTrainedTokenizerBase) -> None:
    engine = Failing(ReplayEngine(script=lambda request: "YES"), left=2)
    assert ask(engine, Choices(("YES",)), tokenizer) == "YES"
    assert len(set(engine.seeds)) == 3
    with pytest.raises(EngineError, match="cut short"):
        ask(Failing(left=3), Choices(("YES",)), tokenizer)


def test_other_failures_are_not_repeated(tokenizer: PreTrainedTokenizerBase) -> None:
    free, dead = Failing(left=1), Failing(left=1, error=EngineDiedError)
    with pytest.raises(EngineError):
        ask(free, None, tokenizer)
    with pytest.raises(EngineDiedError):
        ask(dead, Choices(("YES",)), tokenizer)
    assert len(free.seeds) == len(dead.seeds) == 1


def test_an_engine_of_text_plays_without_the_models_tokenizer() -> None:
    engine = WatchedEngine(ReplayEngine(script=reply), text_only=True)
    mas = MagenticOne(TaskTools(corpus=CORPUS, python=False, max_characters=400, results=2))
    teams = MagenticTeams(mas, engine, "no such model", BENCHMARK)
    played = asyncio.run(teams.episode(TASK, 0, 7, "add_all"))
    assert played.answer == episode("add_all").answer == "Riverside Gym\nThe Yard"
    assert {request.prompt_ids for request in engine.asked} == {None}


def test_every_call_is_traced_and_can_be_played_back(tmp_path: Path) -> None:
    """Whichever team is faster: a call's place depends on its team alone. Tokens add up to those of the teams."""
    path = tmp_path / "trace.jsonl"
    engine = WatchedEngine(ReplayEngine(script=reply))
    played = episode("none", engine)
    TraceWriter(path).write(teams_phase("none"), 7, [traced(played)])
    *calls, whole = read_trace(path)
    assert isinstance(whole, TracedEpisode)
    assert (whole.mas, whole.calls, len(engine.asked)) == ("teams_3", len(calls), len(calls))
    spent = sum(result.tokens for result in played.results)
    aggregator = [call for call in calls if isinstance(call, TracedCall) and not call.agent.startswith("team")]
    assert [call.call % 4 for call in aggregator] == [0]
    of_all = whole.prompt_tokens + whole.completion_tokens
    assert of_all == spent + aggregator[0].prompt_tokens + aggregator[0].completion_tokens
    assert episode("none", WatchedEngine(ReplayEngine(trace=path))).answer == played.answer
    teams_alone = {(step.agent.split("/")[0], step.call % 4 - 1) for step in played.calls} - {("aggregator", -1)}
    assert teams_alone == {("team0", 0), ("team1", 1), ("team2", 2)}


def test_thoughts_are_not_said() -> None:
    assert spoken("<think>\nWhich gym?\n</think>\n\nThe Yard") == "The Yard"
    assert spoken(" The Yard\n") == " The Yard\n"
