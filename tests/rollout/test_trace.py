from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.trajectory import Cost, Trajectory
from rollout.trace import TraceWriter, total_cost, trace_lines, traced_call, traced_episode
from tests.memory.parts import a_trajectory


def two_calls(question: str = "Who wrote Emma?", output: str = "Jane Austen") -> Trajectory:
    trajectory = a_trajectory(question, output, member=3)
    first = trajectory.steps[0]
    second = replace(first, agent="user_proxy", role="user_proxy", call=1, cost=Cost(6, 3, 2, 5, 0.3, 0.1, 0.05, 1))
    return replace(trajectory, steps=(first, second), wall_s=0.5)


def test_a_call_says_who_did_what_at_which_cost() -> None:
    trajectory = two_calls()
    call = traced_call("lmpo", 7, trajectory, trajectory.steps[1])
    assert (call.phase, call.step, call.task, call.member, call.call) == ("lmpo", 7, "t0", 3, 1)
    assert (call.mas, call.agent, call.role) == ("autogen", "user_proxy", "user_proxy")
    assert (call.prompt_tokens, call.completion_tokens, call.latent_tokens, call.cached_tokens) == (6, 3, 2, 5)
    assert (call.wall_s, call.first_token_s, call.queue_s, call.retries) == (0.3, 0.1, 0.05, 1)
    assert (call.output_ids, call.logprobs, call.entry_ids) == ((5, 6), (-0.5, -0.25), ("e0",))


def test_an_episode_sums_its_calls_and_says_how_it_ended() -> None:
    episode = traced_episode("lmpo", 7, replace(two_calls(), failure="engine: x"))
    assert (episode.calls, episode.answer, episode.score) == (2, "Jane Austen", {"exact_match": 1.0})
    assert episode.failure == "engine: x"
    assert (episode.prompt_tokens, episode.completion_tokens, episode.latent_tokens) == (10, 5, 2)
    assert (episode.cached_tokens, episode.queue_s, episode.retries) == (5, 0.05, 1)
    assert (episode.wall_s, episode.first_token_s) == (0.5, None)  # the clock, and what the first call told


def test_what_no_call_tells_is_unknown_and_not_zero() -> None:
    silent = Cost(1, 1, 0, None, 0.1, None, None)
    told = Cost(1, 1, 0, 0, 0.1, 0.02, 0.0)
    assert (total_cost([silent], 1.0).cached_tokens, total_cost([silent], 1.0).queue_s) == (None, None)
    assert (total_cost([told, silent], 1.0).cached_tokens, total_cost([told, silent], 1.0).first_token_s) == (0, 0.02)
    assert total_cost([], 1.0) == Cost(0, 0, 0, None, 1.0, None, None)


def test_batches_are_appended_in_episode_order(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "new" / "folder" / "trace.jsonl")
    writer.write("collect", 0, [two_calls("first?"), two_calls("second?")])
    writer.write("lmpo", 1, [two_calls("third?")])
    writer.write("lmpo", 2, [])
    records = [json.loads(line) for line in writer.path.open(encoding="utf-8")]
    assert [record["kind"] for record in records] == ["call", "call", "episode"] * 3
    questions = [record["prompt"].rsplit("\n", 1)[-1] for record in records if record["kind"] == "call"]
    assert questions == [*["first?"] * 2, *["second?"] * 2, *["third?"] * 2]
    assert [(record["phase"], record["step"]) for record in records] == [("collect", 0)] * 6 + [("lmpo", 1)] * 3


@given(question=st.text(), output=st.text())
def test_any_text_takes_exactly_one_line(question: str, output: str) -> None:
    for line in trace_lines("lmpo", 0, two_calls(question, output)):
        assert "\n" not in line
        assert json.loads(line)["task"] == "t0"


def test_a_number_that_json_does_not_have_is_refused() -> None:
    step = replace(two_calls().steps[0], logprobs=(float("nan"),))
    with pytest.raises(ValueError, match="not JSON compliant"):
        list(trace_lines("lmpo", 0, replace(two_calls(), steps=(step,))))
