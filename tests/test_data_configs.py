"""The overlays of configs/data: each parses on top of the paper's settings, and says what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonargparse import Namespace

from lightning_modules.cli import MemoryCLI, build

OVERLAYS = sorted(Path(__file__).resolve().parents[1].glob("configs/data/*.yaml"))


def parsed(monkeypatch: pytest.MonkeyPatch, overlay: Path) -> Namespace:
    """The resolved config; nothing is built of it: the backbone has four billion parameters."""
    monkeypatch.setattr(MemoryCLI, "instantiate_classes", lambda self: None)
    config: Namespace = build(["--config", "configs/train/latentmem.yaml", "--config", str(overlay)]).config
    return config


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: path.stem)
def test_an_overlay_changes_the_benchmark_and_its_reward_only(monkeypatch: pytest.MonkeyPatch, overlay: Path) -> None:
    config = parsed(monkeypatch, overlay)
    rewards = {"kodcode": "passed", "bigcodebench": "passed", "mixed": "accuracy"}
    assert config.model.init_args.lmpo.reward == rewards.get(overlay.stem, "exact_match")
    assert config.model.init_args.composer.latents == 8
    assert config.data.lmpo.batch_size == 4


def test_the_mixture_has_the_four_in_domain_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    config = parsed(monkeypatch, next(path for path in OVERLAYS if path.stem == "mixed"))
    domains = config.data.benchmark.init_args.domains
    assert [domain.weight for domain in domains] == [5000, 6000, 1832, 7000]
    assert domains[2].benchmark.class_path == "data.strategyqa.StrategyQA"
