from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from memory.shared_bank import Entry, SharedBank
from rollout.clock import WallClock
from rollout.mas.magentic_one.magentic_one import TEAM, MagenticOne, MagenticOneSettings
from rollout.mas.mas import MAS
from rollout.mas.playback import playback
from rollout.structure import Choices
from rollout.teams import Seat
from tests.rollout.magentic_one.scripted_team import TASK, EchoTool, Reply, asked_for, ledger, team, tools_of
from tests.rollout.transcript import Transcript, play, trajectory_of

GO, DONE = ledger(), ledger(done=True)
STUCK, LOOP = ledger(progress=False), ledger(loop=True)


def alone(reply: Reply, settings: MagenticOneSettings = MagenticOneSettings()) -> tuple[str, list[str], Transcript]:
    """The answer, what was asked for in order, and everything else."""
    answer, played = play(MagenticOne(tools_of(), settings), TASK, reply)
    return answer, [asked_for(call) for call in played.calls], played


def seat(bank: SharedBank, max_steps: int = 5) -> Seat:
    return Seat(0, max_steps, TASK.question, bank, [], None, WallClock())


def test_facts_plan_steps_by_the_ledger_and_the_answer() -> None:
    answer, asked, _ = alone(team([GO, ledger("web"), DONE], {"answer": " 6 \n"}))
    assert asked == ["facts", "plan", "ledger", "coder", "ledger", "web", "ledger", "answer"]
    assert answer == "6"


def test_it_is_a_mas_whose_agents_have_unique_names() -> None:
    seam: MAS = MagenticOne(tools_of())
    assert [agent.name for agent in seam.agents("web")] == ["orchestrator", *TEAM]
    assert seam.agents("qa") == seam.agents("web")


def test_no_step_after_the_limit() -> None:
    _, asked, _ = alone(team([GO]), MagenticOneSettings(max_steps=30))
    assert asked.count("coder") == asked.count("ledger") == 30
    assert asked[-1] == "answer"


@pytest.mark.parametrize(("min_steps", "steps"), [(0, 0), (1, 1), (2, 2)])
def test_a_team_is_not_believed_before_its_first_steps(min_steps: int, steps: int) -> None:
    _, asked, _ = alone(team([DONE]), MagenticOneSettings(min_steps=min_steps))
    assert asked == ["facts", "plan", *["ledger", "coder"] * steps, "ledger", "answer"]
    assert MagenticOneSettings().min_steps == 0
    with pytest.raises(ValueError, match="min_steps is 4, over max_steps of 3"):
        MagenticOneSettings(min_steps=4, max_steps=3)


@pytest.mark.parametrize(
    ("ledgers", "steps_before_replanning"),
    [
        ([STUCK, LOOP, STUCK, DONE], 2),  # 1, 2, 3
        ([STUCK, GO, STUCK, STUCK, STUCK, DONE], 4),  # 1, 0, 1, 2, 3
        ([GO, GO, STUCK, STUCK, LOOP, DONE], 4),  # 0, 0, 1, 2, 3
        ([STUCK, STUCK, GO, LOOP, LOOP, DONE], 4),  # 1, 2, 1, 2, 3
    ],
)
def test_three_stalls_lead_to_a_new_plan(ledgers: Sequence[str], steps_before_replanning: int) -> None:
    _, asked, _ = alone(team(ledgers))
    at = asked.index("update_facts")
    assert asked[at : at + 4] == ["update_facts", "update_plan", "ledger", "answer"]
    assert asked[:at].count("coder") == steps_before_replanning


def test_after_replanning_the_counter_starts_anew_and_what_was_said_is_forgotten() -> None:
    _, asked, played = alone(
        team([STUCK] * 5 + [DONE], {"coder": "a dead end", "facts": "old facts", "update_facts": "new facts"})
    )
    assert asked.count("update_facts") == 1
    updated = asked.index("update_plan")
    assert "a dead end" in played.calls[updated].text
    assert "new facts" in played.calls[updated].text
    after = played.calls[updated + 1].text
    assert "a dead end" not in after
    assert "old facts" not in after
    assert "new facts" in after


def test_everybody_reads_what_was_said_before_and_nothing_that_was_not() -> None:
    _, _, played = alone(team([GO, ledger("web", "look closer"), DONE]))
    for number, call in enumerate(played.calls):
        assert TASK.question in call.text
        assert all(played.replies[later] not in call.text for later in range(number, len(played.calls)))
    web = next(call for call in played.calls if call.agent.name == "web")
    assert "To coder: go on\ncoder: coder 3" in web.text
    assert "Your instruction: look closer" in web.text


def test_prompts_repeat_the_one_before_and_add_to_its_end() -> None:
    _, _, played = alone(team([GO, GO, GO, DONE]))
    ledgers = [call.text.partition("\n\nYour team:")[0] for call in played.calls if asked_for(call) == "ledger"]
    assert all(later.startswith(earlier) for earlier, later in pairwise(ledgers[1:]))


def test_a_tool_is_called_and_its_output_said() -> None:
    tool = EchoTool()
    mas = MagenticOne(tools_of(web=[tool]))
    turns = {"web": '```json\n{"tool": "search", "arguments": {"query": "chairs"}}\n```'}
    _, played = play(mas, TASK, team([ledger("web"), DONE], turns))
    assert tool.calls == [{"query": "chairs"}]
    assert 'web: search({"query": "chairs"})\necho chairs' in played.calls[-1].text


def test_words_in_place_of_a_call() -> None:
    tool = EchoTool()
    turns = {"web": '{"text": "I know: six"}'}
    _, played = play(MagenticOne(tools_of(web=[tool])), TASK, team([ledger("web"), DONE], turns))
    assert tool.calls == []
    assert "web: I know: six" in played.calls[-1].text


def test_a_failed_tool_is_an_output() -> None:
    turns = {"web": '{"tool": "search", "arguments": {"query": "fail"}}'}
    _, played = play(MagenticOne(tools_of(web=[EchoTool()])), TASK, team([ledger("web"), DONE], turns))
    assert "search: down" in played.calls[-1].text


def test_an_agent_that_never_replies_in_form_has_that_as_its_output() -> None:
    _, played = play(MagenticOne(tools_of(web=[EchoTool()])), TASK, team([ledger("web"), DONE], {"web": "hm"}))
    assert [asked_for(call) for call in played.calls].count("web") == 3
    assert "web gave no valid reply: 'hm' is no JSON" in played.calls[-1].text


def test_a_ledger_out_of_form_is_asked_for_again_with_the_reason() -> None:
    _, asked, played = alone(team([ledger("stranger"), DONE]))
    assert asked == ["facts", "plan", "ledger", "ledger", "answer"]
    assert "'stranger' is not one of" in played.calls[3].text
    assert played.calls[3].text.startswith(played.calls[2].text)


def test_a_ledger_that_stays_out_of_form_ends_the_episode() -> None:
    with pytest.raises(ValueError, match=r"task t0: the orchestrator gave no valid ledger in 2 attempt.*'nonsense'"):
        alone(team(["nonsense"]), MagenticOneSettings(attempts=2))


def test_the_answer_is_held_to_the_tasks_choices() -> None:
    _, played = play(MagenticOne(tools_of()), replace(TASK, choices=("5", "6")), team([DONE]))
    assert [call.structure for call in played.calls if isinstance(call.structure, Choices)] == [Choices(("5", "6"))]
    assert played.calls[-1].structure == Choices(("5", "6"))


def test_a_file_of_the_task_is_named() -> None:
    task = replace(TASK, metadata={"file_name": "orders.csv"})
    _, played = play(MagenticOne(tools_of()), task, team([DONE]))
    assert all("orders.csv" in call.text for call in played.calls)


def test_without_a_shared_bank_no_keys_are_offered() -> None:
    _, asked, _ = alone(team([GO, GO, DONE]))
    assert "select" not in asked


def test_keys_are_offered_before_a_step_and_values_of_the_selected_go_into_the_context() -> None:
    bank = SharedBank()
    for name in ("red", "blue"):
        bank.append(Entry(f"the {name} key", f"the {name} value", 1, 0, 0.0))
    script = team([DONE], {"select": '{"reason": "", "wanted": [2]}'})
    transcript = Transcript(script)
    asyncio.run(MagenticOne(tools_of()).work(TASK, transcript.act, seat(bank)))
    asked = [asked_for(call) for call in transcript.calls]
    assert asked == ["facts", "plan", "select", "ledger", "answer"]
    assert "1. the red key\n2. the blue key" in transcript.calls[2].text
    assert "the blue value" in transcript.calls[3].text
    assert all("the red value" not in call.text for call in transcript.calls)
    assert [(use.entry, use.team, use.step) for use in bank.uses] == [(1, 0, 0)]


def test_a_value_that_stands_in_the_context_is_not_offered_again() -> None:
    bank = SharedBank()
    bank.append(Entry("the key", "the value", 1, 0, 0.0))
    transcript = Transcript(team([GO, GO, DONE], {"select": '{"reason": "", "wanted": [1]}'}))
    asyncio.run(MagenticOne(tools_of()).work(TASK, transcript.act, seat(bank)))
    assert [asked_for(call) for call in transcript.calls].count("select") == 1
    assert len(bank.uses) == 1


def test_each_step_is_reported_with_instruction_output_and_context() -> None:
    reported = seat(SharedBank())
    asyncio.run(MagenticOne(tools_of()).work(TASK, Transcript(team([ledger(say="sum up"), DONE])).act, reported))
    assert [(step.instruction, step.output) for step in reported.steps] == [("sum up", "coder 3")]


def test_an_episode_can_be_played_back() -> None:
    mas = MagenticOne(tools_of(web=[EchoTool()]))
    turns = {"web": '{"tool": "search", "arguments": {"query": "chairs"}}', "answer": "6"}
    answer, played = play(mas, TASK, team([ledger("web"), GO, DONE], turns), seed=3)
    assert asyncio.run(mas.run(TASK, playback(trajectory_of(mas, TASK, answer, played)))) == answer == "6"


def test_settings_that_would_never_end_are_refused() -> None:
    with pytest.raises(ValueError, match="max_stalls is 1; give at least 2"):
        MagenticOneSettings(max_stalls=1)
