from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from data.trajectory import Trajectory
from rollout.trace import TraceWriter, call_records
from tests.memory.parts import a_trajectory

FIELDS = {
    "phase",
    "step",
    "task",
    "mas",
    "member",
    "call",
    "agent",
    "role",
    "prompt",
    "output",
    "finish_reason",
    "entry_ids",
    "prompt_tokens",
    "completion_tokens",
    "latent_tokens",
    "cached_tokens",
    "wall_s",
    "first_token_s",
    "queue_s",
    "retries",
    "score",
}


def two_calls(question: str = "Who wrote Emma?", output: str = "Jane Austen") -> Trajectory:
    trajectory = a_trajectory(question, output, member=3)
    first = trajectory.steps[0]
    return replace(trajectory, steps=(first, replace(first, agent="user_proxy", role="user_proxy")))


def read(path: Path) -> list[dict[str, object]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_a_record_says_who_did_what_at_which_cost() -> None:
    first, last = call_records("lmpo", 7, two_calls())
    assert set(first) == FIELDS
    assert (first["phase"], first["step"], first["task"], first["member"], first["call"]) == ("lmpo", 7, "t0", 3, 0)
    assert (first["agent"], last["agent"], last["call"]) == ("assistant", "user_proxy", 1)
    assert (first["prompt_tokens"], first["completion_tokens"], first["wall_s"]) == (4, 2, 0.1)
    assert first["entry_ids"] == ["e0"]


def test_the_score_stands_on_the_last_call() -> None:
    assert [record["score"] for record in call_records("lmpo", 0, two_calls())] == [None, {"exact_match": 1.0}]


def test_batches_are_appended_in_episode_order(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path / "new" / "folder" / "trace.jsonl")
    writer.write("collect", 0, [two_calls("first?"), two_calls("second?")])
    writer.write("lmpo", 1, [two_calls("third?")])
    writer.write("lmpo", 2, [])
    records = read(writer.path)
    assert [str(record["prompt"]).rsplit("\n", 1)[-1] for record in records] == [
        *["first?"] * 2,
        *["second?"] * 2,
        *["third?"] * 2,
    ]
    assert [(record["phase"], record["step"]) for record in records] == [("collect", 0)] * 4 + [("lmpo", 1)] * 2


@given(question=st.text(), output=st.text())
def test_any_text_takes_exactly_one_line(question: str, output: str) -> None:
    for record in call_records("lmpo", 0, two_calls(question, output)):
        line = json.dumps(record, ensure_ascii=False)
        assert "\n" not in line
        assert json.loads(line) == record
