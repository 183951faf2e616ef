from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout.trace import TracedCall, TracedEpisode, TraceWriter, traced_call, traced_episode
from rollout.trace_reader import read_trace
from tests.memory.parts import a_trajectory
from tests.rollout.test_trace import two_calls

DOCS = Path(__file__).resolve().parents[2] / "docs" / "trace.md"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    writer = TraceWriter(tmp_path / "trace.jsonl")
    writer.write("lmpo", 7, [two_calls(), replace(two_calls(), steps=(), answer="", failure="engine: x")])
    return writer.path


def edit(path: Path, line: int, **changes: Any) -> None:
    """Set fields of one line (from 1); ``...`` takes a field out."""
    lines = path.read_text(encoding="utf-8").splitlines()
    record = {**json.loads(lines[line - 1]), **changes}
    lines[line - 1] = json.dumps({key: value for key, value in record.items() if value is not ...})
    path.write_text("".join(f"{each}\n" for each in lines), encoding="utf-8")


def test_what_was_written_is_read(path: Path) -> None:
    made = two_calls()
    calls = [traced_call("lmpo", 7, made, step) for step in made.steps]
    failed = replace(made, steps=(), answer="", failure="engine: x")
    assert list(read_trace(path)) == [*calls, traced_episode("lmpo", 7, made), traced_episode("lmpo", 7, failed)]


@given(question=st.text(), output=st.text(), logprob=st.floats(-1e9, 0))
@settings(deadline=None, max_examples=40)
def test_every_text_and_float_survives(
    tmp_path_factory: pytest.TempPathFactory, question: str, output: str, logprob: float
) -> None:
    writer = TraceWriter(tmp_path_factory.mktemp("trace") / "trace.jsonl")
    made = a_trajectory(question, output)
    made = replace(made, steps=(replace(made.steps[0], logprobs=(logprob, -0.1)),))
    writer.write("lmpo", 0, [made])
    assert list(read_trace(writer.path)) == [
        traced_call("lmpo", 0, made, made.steps[0]),
        traced_episode("lmpo", 0, made),
    ]


@pytest.mark.parametrize(
    ("line", "changes", "message"),
    [
        (1, {"kind": "cal"}, "line 1: kind is 'cal', it must be one of call, episode"),
        (2, {"agent": ...}, "line 2: call.agent is missing"),
        (2, {"agnet": "x"}, "line 2: call.agnet is no field of a trace"),
        (1, {"step": -1}, "line 1: call.step must be int, got -1"),
        (1, {"step": True}, "line 1: call.step must be int, got True"),
        (1, {"wall_s": "fast"}, "line 1: call.wall_s must be float, got 'fast'"),
        (1, {"wall_s": -0.1}, "line 1: call.wall_s must be float, got -0.1"),
        (1, {"cached_tokens": 1.5}, "line 1: call.cached_tokens must be int | None, got 1.5"),
        (1, {"entry_ids": [1]}, "line 1: call.entry_ids must be tuple[str, ...], got [1]"),
        (1, {"logprobs": [None]}, "line 1: call.logprobs must be tuple[float, ...], got [None]"),
        (1, {"output": None}, "line 1: call.output must be str, got None"),
        (3, {"score": {"exact_match": "1"}}, "line 3: episode.score must be dict[str, float]"),
        (3, {"failure": 1}, "line 3: episode.failure must be str | None, got 1"),
        (3, {"prompt_tokens": 11}, "line 3: episode.prompt_tokens is 11, its calls make it 10"),
        (3, {"retries": 0}, "line 3: episode.retries is 0, its calls make it 1"),
        (3, {"calls": 3}, "line 3: episode.calls is 3, its calls make it 2"),
        (3, {"member": 4}, "line 3: episode ('lmpo', 7, 't0', 4, 'autogen') follows a call of another one"),
        (4, {"completion_tokens": 1}, "line 4: episode.completion_tokens is 1, its calls make it 0"),
    ],
)
def test_a_wrong_line_is_named_with_its_field(path: Path, line: int, changes: dict[str, Any], message: str) -> None:
    edit(path, line, **changes)
    with pytest.raises(ValueError, match="^" + re.escape(f"{path}, {message}")):
        list(read_trace(path))


@pytest.mark.parametrize("cut", ["{", "[1]", "", '"call"'])
def test_a_line_that_is_no_record_is_named(path: Path, cut: str) -> None:
    with path.open("a") as file:
        file.write(f"{cut}\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 5: ") + "(not JSON|kind is None)"):
        list(read_trace(path))


def test_a_file_that_ends_before_its_episode_is_refused(path: Path) -> None:
    path.write_text("".join(path.open().readlines()[:2]))
    with pytest.raises(ValueError, match="line 2: the file ends before the line of the episode"):
        list(read_trace(path))


def test_an_empty_trace_has_no_records(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").touch()
    assert list(read_trace(tmp_path / "trace.jsonl")) == []


def test_one_record_is_in_memory_at_a_time(path: Path) -> None:
    edit(path, 4, phase=...)
    records = read_trace(path)
    assert isinstance(next(records), TracedCall)  # the fault on line 4 has not been read


@pytest.mark.parametrize("record", [TracedCall, TracedEpisode])
def test_the_documentation_names_every_field(record: type[TracedCall] | type[TracedEpisode]) -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert [field.name for field in fields(record) if f"`{field.name}`" not in text] == []
