"""Admission variants on real teams: MagenticOne, tools, an engine, the controller in the loop.

    python -m eval.lts_live --config configs/train/lts_assistantbench_sample.yaml --variants none lts --limit 2

Prints one line a variant and writes ``results.json`` and ``episodes.jsonl`` (every step, decision and use). Without
``--checkpoint`` the controller is an untrained one, and the results say so.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

import torch

from data.datamodule import TaskDataModule
from data.task import Task
from eval.report import write_text
from lightning_modules.cli import build
from lightning_modules.lts import LTS
from rollout.admission import VARIANTS, Variant
from rollout.seeds import call_seed
from rollout.team_measures import Measures, measure, runtime_cdf
from rollout.teams_episode import TeamsEpisode, episode_to_dict

Played = Mapping[Variant, Sequence[TeamsEpisode]]


def main(argv: Sequence[str]) -> None:
    """Play every variant on the same tasks."""
    parser = argparse.ArgumentParser(prog="python -m eval.lts_live", description=__doc__)
    parser.add_argument("--config", required=True, help="of train.py")
    parser.add_argument("--checkpoint", type=Path, help="of the controller; an untrained one by default")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--split", default="test")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/lts_live"))
    args = parser.parse_args(argv)
    module, data = load(args.config, args.checkpoint)
    tasks = data.benchmark.tasks(args.split)[: args.limit]
    try:
        played = {variant: play(module, tasks, variant, args.seed) for variant in args.variants}
    finally:
        module.teardown("test")
    command = shlex.join(["python", "-m", "eval.lts_live", *argv])
    write(args.out, played, module.reinforce.reward, command, trained=args.checkpoint is not None)
    print(f"{table(played, module.reinforce.reward)}\nwrote {args.out / 'results.json'} and episodes.jsonl beside it")


def load(config: str, checkpoint: Path | None) -> tuple[LTS, TaskDataModule]:
    """Module and data of a training config; with the weights of ``checkpoint``, if any."""
    cli = build(["--config", config])
    if not isinstance(cli.model, LTS) or not isinstance(cli.datamodule, TaskDataModule):
        raise SystemExit(f"{config} is no config of LTS on a TaskDataModule")
    if checkpoint is not None:
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)["state_dict"]
        cli.model.load_state_dict(state, strict=False)
    cli.model.eval()
    return cli.model, cli.datamodule


def play(module: LTS, tasks: Sequence[Task], variant: Variant, seed: int) -> list[TeamsEpisode]:
    """One episode a task, greedy decisions."""
    controller = module.admission(epoch=0, temperature=0.0)
    with torch.no_grad():
        return module.play(tasks, 1, call_seed(seed, 0, "eval", 0, 0), variant, controller)


def table(played: Played, metric: str) -> str:
    """One line a variant, every measure a column."""
    names = [field.name for field in fields(Measures)]
    rows = [[variant, *asdict(measure(episodes, metric)).values()] for variant, episodes in played.items()]
    lines = [f"| {' | '.join(['variant', *names])} |", f"|{'---|' * (len(names) + 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(_cell, row))} |" for row in rows)])


def write(folder: Path, played: Played, metric: str, command: str, trained: bool) -> None:
    """``results.json`` and ``episodes.jsonl``."""
    variants = {
        variant: {**asdict(measure(episodes, metric)), "runtime_cdf": runtime_cdf(episodes)}
        for variant, episodes in played.items()
    }
    results = {"command": command, "metric": metric, "controller_trained": trained, "variants": variants}
    write_text(folder / "results.json", json.dumps(results, indent=1) + "\n")
    lines = [{"variant": variant, **episode_to_dict(each)} for variant, group in played.items() for each in group]
    write_text(folder / "episodes.jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "–" if value is None else str(value)


if __name__ == "__main__":
    main(sys.argv[1:])
