"""The overlays of configs/data and configs/mas: each parses on top of the paper's settings, and is what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonargparse import Namespace

from data.datamodule import TaskDataModule
from lightning_modules.cli import MemoryCLI, Parser, build
from rollout.mas.mas import MAS

OVERLAYS = sorted(Path(__file__).resolve().parents[1].glob("configs/data/*.yaml"))
IN_DOMAIN = ("triviaqa", "popqa", "strategyqa", "kodcode")
# Paper, App. B.3 and B.4: trained on two systems; two more, and a benchmark, are held out; one run over all domains.
SETTINGS = [
    *((data, mas) for data in IN_DOMAIN for mas in ("autogen", "macnet")),
    *(("bigcodebench", mas) for mas in ("autogen", "macnet", "camel", "dylan")),
    *(("triviaqa", mas) for mas in ("camel", "dylan")),
    ("mixed", "autogen"),
    ("mixed", "macnet"),
]


def parsed(monkeypatch: pytest.MonkeyPatch, overlay: Path, *flags: str) -> Namespace:
    """The resolved config; nothing is built of it: the backbone has four billion parameters."""
    monkeypatch.setattr(MemoryCLI, "instantiate_classes", lambda self: None)
    config: Namespace = build(["--config", "configs/train/latentmem.yaml", "--config", str(overlay), *flags]).config
    return config


@pytest.mark.parametrize(("data", "mas"), SETTINGS)
def test_the_settings_of_the_paper_are_built_without_their_model(
    monkeypatch: pytest.MonkeyPatch, data: str, mas: str
) -> None:
    overlay = next(path for path in OVERLAYS if path.stem == data)
    config = parsed(monkeypatch, overlay, f"--model.init_args.mas=configs/mas/{mas}.yaml")
    parser = Parser()
    parser.add_class_arguments(TaskDataModule, "data")
    parser.add_subclass_arguments(MAS, "mas")
    built = parser.instantiate_classes(Namespace(data=config.data, mas=config.model.init_args.mas))
    assert type(built.mas).__name__.lower() == mas
    name = "triviaqa+popqa+strategyqa+kodcode" if data == "mixed" else data
    assert built.data.benchmark.name == name
    assert config.model.init_args.lmpo.reward in built.data.benchmark.metrics


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
