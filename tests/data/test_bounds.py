from __future__ import annotations

import math
import re

import pytest

from data.bounds import check_at_least, check_metric, check_share
from data.datamodule import StageSettings


@pytest.mark.parametrize("value", [1, 1.0, 7, math.inf])
def test_at_least_takes_the_bound_and_what_is_above(value: float) -> None:
    check_at_least(1, "rollout", max_tokens=value)


@pytest.mark.parametrize("value", [0, -1, 0.999, -math.inf, math.nan])
def test_at_least_names_section_key_value_and_bound(value: float) -> None:
    with pytest.raises(ValueError, match=rf"^rollout\.history is {re.escape(str(value))}; it must be at least 1$"):
        check_at_least(1, "rollout", max_tokens=3, history=value)


@pytest.mark.parametrize("value", [0.001, 0.5, 1])
def test_a_share_is_above_0_and_at_most_1(value: float) -> None:
    check_share("engine.init_args", gpu_memory_utilization=value)


@pytest.mark.parametrize("value", [0, -0.5, 1.001, 90, math.nan])
def test_what_is_no_share_is_refused_by_key(value: float) -> None:
    with pytest.raises(ValueError, match=r"^engine\.init_args\.gpu_memory_utilization is .* above 0 and at most 1$"):
        check_share("engine.init_args", gpu_memory_utilization=value)


def test_a_metric_is_one_of_the_benchmarks() -> None:
    check_metric("lmpo.reward", "token_f1", "sample", ("exact_match", "token_f1"))


@pytest.mark.parametrize(
    ("given", "hint"), [("exact-match", "did you mean 'exact_match'?"), ("bleu", "it has exact_match, token_f1")]
)
def test_another_metric_is_refused_with_what_there_is(given: str, hint: str) -> None:
    said = f"lmpo.reward is {given!r}, which is no score of benchmark 'sample'; {hint}"
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        check_metric("lmpo.reward", given, "sample", ("exact_match", "token_f1"))


@pytest.mark.parametrize(("name", "value"), [("batch_size", 0), ("epochs", -1.0), ("steps", -2), ("tasks", -1)])
def test_a_stage_that_cannot_be_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"^data\.<stage>\.{name} is {value}; it must be at least"):
        StageSettings(**{name: value})  # type: ignore[arg-type]
