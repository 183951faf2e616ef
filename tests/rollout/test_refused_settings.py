"""Settings of engines and teams that mean nothing are refused when they are made, by key, and show no secret."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import pytest

from data.assistantbench import AssistantBench
from rollout.engine import check_temperature
from rollout.gym.gym import Gym
from rollout.magentic_teams import MagenticTeams
from rollout.mas.magentic_one.magentic_one import MagenticOne
from rollout.openai_engine import OpenAIEngine
from rollout.team_calls import TeamSampling
from rollout.transformers_engine import TransformersEngine
from rollout.vllm_engine import VLLMEngine
from rollout.vllm_server_engine import VLLMServerEngine
from tests.rollout.watched_engine import WatchedEngine


def server(**settings: Any) -> VLLMServerEngine:
    return VLLMServerEngine("small", ["http://localhost:8000"], **settings)


def openai(**settings: Any) -> OpenAIEngine:
    return OpenAIEngine("small", **{"base_url": "http://localhost:8000/v1", "api_key_env": None, **settings})


def teams(**settings: Any) -> MagenticTeams:
    benchmark = AssistantBench(source="sample")
    return MagenticTeams(MagenticOne(lambda task: {}), WatchedEngine(), "small", benchmark, **settings)


@pytest.mark.parametrize(
    ("make", "section", "name", "value", "wanted"),
    [
        (VLLMEngine, "engine", "max_model_len", 1, "at least 2"),
        (VLLMEngine, "engine", "max_num_seqs", 0, "at least 1"),
        (VLLMEngine, "engine", "kv_cache_gib", -2, "at least 1"),
        (VLLMEngine, "engine", "cpu_threads", 0, "at least 1"),
        (VLLMEngine, "engine", "tensor_parallel_size", 0, "at least 1"),
        (VLLMEngine, "engine", "gpu_memory_utilization", 45, "above 0 and at most 1"),
        (TransformersEngine, "engine", "max_model_len", -1, "at least 2"),
        (TransformersEngine, "engine", "max_batch", 0, "at least 1"),
        (TransformersEngine, "engine", "structure_attempts", 0, "at least 1"),
        (server, "engine", "max_retries", -1, "at least 0"),
        (server, "engine", "timeout_s", 0.0, "at least 0.001"),
        (openai, "engine", "max_retries", -1, "at least 0"),
        (openai, "engine", "timeout_s", math.nan, "at least 0.001"),
        (openai, "engine", "structure_attempts", 0, "at least 1"),
        (teams, "teams", "teams", 0, "at least 1"),
        (teams, "teams", "max_steps", -3, "at least 1"),
        (teams, "teams", "transcript_characters", 0, "at least 1"),
        (Gym, "teams", "teams", 0, "at least 1"),
    ],
)
def test_a_number_that_means_nothing(
    make: Callable[..., object], section: str, name: str, value: float, wanted: str
) -> None:
    arguments: dict[str, Any] = {name: value}
    if make in (VLLMEngine, TransformersEngine):
        arguments["model"] = "small"
    with pytest.raises(ValueError, match=rf"^{section}\.init_args\.{name} is {value}; it must be {wanted}"):
        make(**arguments)


@pytest.mark.parametrize("temperature", [-1.0, 0.005, math.inf, math.nan])
def test_a_temperature_that_nothing_samples_at(temperature: float) -> None:
    with pytest.raises(ValueError, match=rf"^model\.temperature is {temperature}; give 0 for greedy"):
        check_temperature("model.temperature", temperature)
    with pytest.raises(ValueError, match=r"^sampling\.temperature is "):
        TeamSampling(temperature=temperature)


@pytest.mark.parametrize("temperature", [0.0, 0.01, 1.0, 2.0])
def test_a_temperature_that_something_samples_at(temperature: float) -> None:
    check_temperature("model.temperature", temperature)
    assert TeamSampling(temperature=temperature).temperature == temperature


@pytest.mark.parametrize(
    "url", ["https://me:hunter2@api.example/v1", "https://hunter2@api.example", "https://api.example/v1?key=hunter2"]
)
def test_a_secret_in_an_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(
        ValueError, match=r"^engine\.init_args\.base_url holds a user, a password or a query"
    ) as refused:
        openai(base_url=url)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("url", ["api.example/v1", "localhost:8000", "ftp://api.example"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match=r"^engine\.init_args\.base_url is '.*'; give http\(s\)://host/v1"):
        openai(base_url=url)


@pytest.mark.parametrize("given", ["sk-0123456789abcdef", "0123abcd", "abcdef0123456789", "", "Bearer X"])
@pytest.mark.parametrize("make", [openai, server])
def test_a_key_in_the_place_of_its_name_is_not_shown(given: str, make: Callable[..., object]) -> None:
    if not given:
        cast(Any, make)(api_key_env=given)  # as null: no key
        return
    with pytest.raises(ValueError, match=r"^api_key_env must be the NAME of an environment variable") as refused:
        make(api_key_env=given)
    assert given not in str(refused.value)
