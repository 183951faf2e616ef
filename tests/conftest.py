"""Real parts that several rooms test with: a tiny random model, the small model, one vLLM engine for the session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from data.assets import SMOLLM2, resolve_model
from rollout.event_loop import EventLoopThread
from rollout.vllm_engine import VLLMEngine
from tests.tiny_model import save_tiny_model


def pytest_configure() -> None:
    # Threads that wait for each other spin: on a few cores shared with a vLLM process, two are slower than one.
    torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever asks for the vLLM engine carries its marker."""
    for item in items:
        if "vllm_engine" in getattr(item, "fixturenames", ()):
            item.add_marker("vllm")


@pytest.fixture(scope="session")
def tiny_model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer Llama of 32 dimensions and its ChatML tokenizer, saved as a checkpoint."""
    return save_tiny_model(tmp_path_factory.mktemp("tiny-model"))


@pytest.fixture(scope="session")
def smollm_path() -> str:
    """The local checkpoint of SmolLM2-135M-Instruct, built once a machine."""
    return resolve_model(SMOLLM2)


@pytest.fixture(scope="session")
def loop() -> Iterator[EventLoopThread]:
    """The one thread that drives every engine of the session."""
    thread = EventLoopThread()
    yield thread
    thread.close()


@pytest.fixture(scope="session")
def vllm_engine(loop: EventLoopThread, smollm_path: str) -> Iterator[VLLMEngine]:
    """SmolLM2-135M-Instruct in fp32 on vLLM, started on ``loop``: use it through ``loop.run``."""
    engine = VLLMEngine(smollm_path, dtype="float32", max_model_len=512, max_num_seqs=32, kv_cache_gib=1)
    loop.run(engine.start())
    yield engine
    loop.run(engine.close())
