"""The bench of the LMPO update compares like with like: on a tiny model both ways agree, and the clip acts."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from eval.bench import lmpo_step
from eval.bench.lmpo_step import Workload, make_update, ours, relative_differences, run, straightforward
from eval.bench.peak_memory import PeakMemory, Work

SMALL = {
    "members": 3,
    "prompt_tokens": 40,
    "response_tokens": 5,
    "experience_tokens": 12,
    "micro_batch": 2,
    "threads": 1,
}


@pytest.fixture
def workload(tiny_model_dir: Path) -> Workload:
    return Workload(model=str(tiny_model_dir), **SMALL)


def test_both_ways_give_one_loss_and_one_gradient(workload: Workload) -> None:
    _, difference = run(workload, repeats=1)
    assert difference < 1e-4


def test_every_trained_weight_is_compared_and_moves(workload: Workload) -> None:
    update = make_update(workload)
    assert ours(update) == pytest.approx(straightforward(update), rel=1e-4)
    update.forget()
    ours(update)
    gradients = update.gradients()
    assert gradients.keys() == update.weights().keys()
    assert all(gradient.abs().max() > 0 for gradient in gradients.values())


def test_a_wrong_gradient_is_seen(workload: Workload) -> None:
    update = make_update(workload)
    ours(update)
    right = update.gradients()
    wrong = {**right, "queries": right["queries"] * 1.01}
    together, worst = relative_differences(wrong, right)
    assert worst == pytest.approx(0.01, rel=1e-3)
    assert 0 < together < worst
    with pytest.raises(ValueError, match=r"different weights: \['queries'\]"):
        relative_differences({name: right[name] for name in right if name != "queries"}, right)


def test_the_clip_acts_on_some_tokens(workload: Workload) -> None:
    update = make_update(workload)
    kept: list[bool] = []

    def noted(row: int, logprobs: torch.Tensor) -> torch.Tensor:
        logprobs.register_hook(lambda gradient: kept.extend((gradient != 0).tolist()))
        return update.call_loss(row, logprobs)

    ours(replace(update, call_loss=noted))
    assert len(kept) == 6 * SMALL["response_tokens"]
    assert any(kept)
    assert not all(kept)


def test_prompts_have_the_length_that_was_asked_for(workload: Workload) -> None:
    calls = make_update(workload).calls
    assert len(calls) == 6
    assert {len(call.prefix_ids) + len(call.suffix_ids) for call in calls} == {40}
    assert len({call.prefix_ids for call in calls[::2]}) == 1
    assert len({call.prefix_ids for call in calls[1::2]}) == 3


def test_the_last_line_is_the_result(
    tiny_model_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_this_process(prepare: Callable[..., Work], *args: object) -> PeakMemory:
        pickle.dumps((prepare, args))  # a fresh process, which takes its time to start, would have to find them
        prepare(*args)()
        return PeakMemory(100.0, 180.0 if straightforward in args else 120.0)

    monkeypatch.setattr(lmpo_step, "measure_peak", in_this_process)
    flags = [part for name, value in SMALL.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    lmpo_step.main(["--model", str(tiny_model_dir), *flags])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result.keys() == {"bench", "speedup", "grad_rel_diff", "peak_mem_ratio"}
    assert (result["bench"], result["peak_mem_ratio"]) == ("lmpo_step", 4.0)
    assert result["grad_rel_diff"] < 1e-4
