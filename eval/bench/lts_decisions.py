"""Admission decisions of LTS: all of an episode in one forward pass, and each at inference from a growing cache.

    packed   one forward pass for all decisions of an episode  against  one forward pass a decision
    cached   a decision from the kept keys and values of [query ; keys]  against  its whole context anew

Both pairs give the same logits; their largest difference is the last figure. Weights are real, what φ would give is
random vectors of its length: the time does not depend on them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import torch

from eval.bench.result import print_result
from eval.bench.timing import Ratios, compare
from lightning_modules.backbone import Backbone
from lightning_modules.controller import Controller, ControllerSettings, DecisionCache
from lightning_modules.lts import LORA
from lightning_modules.packed_decisions import EmbeddedEpisode, score_packed, score_separately
from lightning_modules.phi import embedding_scale


@dataclass(frozen=True)
class Workload:
    """One episode.

    Attributes:
        model: asset name, local path or hub id.
        teams: K (paper: 3).
        steps: of each team (paper: 30).
        entries: keys in the bank at the episode's end, and at the cached decision.
        threads: of torch.
    """

    model: str = "smollm2-135m-instruct"
    teams: int = 3
    steps: int = 30
    entries: int = 60
    threads: int = 2


def main(argv: Sequence[str]) -> None:
    """Print what was compared, then the result."""
    parser = argparse.ArgumentParser(prog="python -m eval.bench lts_decisions", description=__doc__)
    for name, default in asdict(Workload()).items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    parser.add_argument("--repeats", type=int, default=3, help="timed pairs; each figure is the median")
    args = vars(parser.parse_args(argv))
    repeats = args.pop("repeats")
    workload = Workload(**args)
    torch.set_num_threads(workload.threads)
    backbone, controller = make_controller(workload.model)
    episode = make_episode(workload, backbone)
    with torch.no_grad(), backbone.adapted():
        packed, packed_difference = packed_against_separate(backbone, controller, episode, repeats)
    cached, cached_difference = cached_against_uncached(backbone, controller, episode, repeats)
    separate_tokens = sum(1 + seen + 3 for seen in episode.seen)
    print(f"decisions        {len(episode.seen)}: {episode.length} tokens packed, {separate_tokens} apart")
    print(f"packed           {min(packed.first_s):.2f} s apart, {min(packed.second_s):.2f} s packed")
    print(
        f"at {len(episode.keys)} entries    {min(cached.first_s):.3f} s uncached, {min(cached.second_s):.3f} s cached"
    )
    print_result(
        "lts_decisions",
        packed_speedup=packed.median,
        cached_speedup=cached.median,
        max_logit_diff=max(packed_difference, cached_difference),
    )


def packed_against_separate(
    backbone: Backbone, controller: Controller, episode: EmbeddedEpisode, repeats: int
) -> tuple[Ratios, float]:
    """Scoring every decision of ``episode`` both ways; adapters must be on."""
    difference = score_packed(backbone, controller, [episode]) - score_separately(backbone, controller, episode)
    ratios = compare(
        lambda: score_separately(backbone, controller, episode),
        lambda: score_packed(backbone, controller, [episode]),
        repeats=repeats,
        warmup=0,
    )
    return ratios, float(difference.abs().max())


def cached_against_uncached(
    backbone: Backbone, controller: Controller, episode: EmbeddedEpisode, repeats: int
) -> tuple[Ratios, float]:
    """One decision over all keys, both ways. The cache has seen all keys but the newest, as after any admission."""
    caches = [DecisionCache(backbone, controller, episode.query) for _ in range(2 * (repeats + 1))]
    for cache in caches:
        cache.logits(episode.keys[:-1], episode.steps[0])
    unused = iter(caches)

    def uncached() -> torch.Tensor:
        return DecisionCache(backbone, controller, episode.query).logits(episode.keys, episode.steps[1])

    def cached() -> torch.Tensor:
        return next(unused).logits(episode.keys, episode.steps[1])

    difference = cached() - uncached()
    return compare(uncached, cached, repeats=2 * repeats, warmup=1), float(difference.abs().max())


def make_controller(model: str) -> tuple[Backbone, Controller]:
    """Seeded, with adapters that are not zero, as they are after some training."""
    torch.manual_seed(0)
    backbone = Backbone(model, torch.float32, LORA)
    for name, weight in backbone.adapter_parameters().items():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.02)
    return backbone, Controller(backbone, ControllerSettings())


def make_episode(workload: Workload, backbone: Backbone) -> EmbeddedEpisode:
    """Teams take turns, and the bank grows evenly from empty to ``entries``."""
    decisions, hidden = workload.teams * workload.steps, backbone.hidden_size
    generator = torch.Generator().manual_seed(0)
    scale = embedding_scale(backbone)

    def draw(*shape: int) -> torch.Tensor:
        return scale * torch.randn(*shape, hidden, generator=generator)

    seen = tuple(decision * workload.entries // decisions for decision in range(decisions))
    return EmbeddedEpisode(draw(1)[0], draw(workload.entries), draw(decisions, 3), seen)
