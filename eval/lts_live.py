"""Admission variants on real teams: MagenticOne, tools, an engine, the controller in the loop.

    python -m eval.lts_live --config configs/train/lts_assistantbench_sample.yaml --variants none lts --limit 2

Prints one line a variant and writes ``results.json`` and ``episodes.jsonl`` (every step, decision and use), anew after
each variant, and every call of the engine into ``trace.jsonl``. Without ``--checkpoint`` the controller is an untrained
one, and the results say so.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from data.datamodule import TaskDataModule
from data.task import Task
from eval.lts_columns import NAMES, check_scored, costs, markdown, score_runtime, utilisation
from eval.report import write_text
from lightning_modules.cli import build
from lightning_modules.lts import LTS
from rollout.admission import VARIANTS, Variant
from rollout.seeds import call_seed
from rollout.team_measures import measure, runtime_cdf
from rollout.teams_episode import TeamsEpisode, episode_to_dict
from rollout.trace import TraceWriter

Played = Mapping[Variant, Sequence[TeamsEpisode]]


def main(argv: Sequence[str]) -> None:
    """Play every variant on the same tasks."""
    parser = argparse.ArgumentParser(prog="python -m eval.lts_live", description=__doc__, allow_abbrev=False)
    parser.add_argument("--config", required=True, help="of train.py; further flags of train.py may follow")
    parser.add_argument("--checkpoint", type=Path, help="of the controller; an untrained one by default")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--split", default="test")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/lts_live"))
    args, overrides = parser.parse_known_args(argv)
    module, data = load(args.config, args.checkpoint, overrides)
    module.trace = TraceWriter(args.out / "trace.jsonl")
    module.on_progress = lambda _, done, total: print(f"  {done}/{total} episodes", flush=True)
    tasks = data.benchmark.tasks(args.split)[: args.limit]
    check_scored(data.benchmark, tasks, module.reinforce.reward)
    command = shlex.join(["python", "-m", "eval.lts_live", *argv])
    played: dict[Variant, list[TeamsEpisode]] = {}
    try:
        for variant in args.variants:
            print(f"{NAMES[variant]}:", flush=True)
            played[variant] = play(module, tasks, variant, args.seed)
            write(args.out, played, module.reinforce.reward, command, trained=args.checkpoint is not None)
    finally:
        module.teardown("test")
    print(f"{table(played, module.reinforce.reward)}\nwrote {args.out / 'results.json'} and episodes.jsonl beside it")


def load(config: str, checkpoint: Path | None, overrides: Sequence[str] = ()) -> tuple[LTS, TaskDataModule]:
    """Module and data of a training config, changed by flags; with the weights of ``checkpoint``, if any.

    Its episodes are played one at a time: a runtime is a task's own, not its neighbours'.
    """
    cli = build(["--config", config, *overrides])
    if not isinstance(cli.model, LTS) or not isinstance(cli.datamodule, TaskDataModule):
        raise SystemExit(f"{config} is no config of LTS on a TaskDataModule")
    if checkpoint is not None:
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
        cli.model.on_load_checkpoint(saved)  # refuses one of other weights
        cli.model.load_state_dict(saved["state_dict"], strict=False)
    cli.model.to(cli.trainer.strategy.root_device).eval()
    cli.model.max_concurrent = 1
    return cli.model, cli.datamodule


def play(module: LTS, tasks: Sequence[Task], variant: Variant, seed: int) -> list[TeamsEpisode]:
    """One episode a task, greedy decisions."""
    controller = module.admission(epoch=0, temperature=0.0)
    with torch.no_grad():
        return module.play(tasks, 1, call_seed(seed, 0, "eval", 0, 0), variant, controller)


def table(played: Played, metric: str) -> str:
    """One line a variant, the measures of the paper's tables in the columns."""
    found = {NAMES[variant]: measure(episodes, metric) for variant, episodes in played.items()}
    cells = {name: {**score_runtime(each), **utilisation(each), **costs(each)} for name, each in found.items()}
    count = len(next(iter(played.values())))
    head = ["variant", *next(iter(cells.values()))]
    return markdown(f"{count} tasks, one episode each", head, [[name, *each.values()] for name, each in cells.items()])


def write(folder: Path, played: Played, metric: str, command: str, trained: bool) -> None:
    """``results.json`` and ``episodes.jsonl``."""
    variants = {
        variant: {**asdict(measure(episodes, metric)), "runtime_cdf": runtime_cdf(episodes)}
        for variant, episodes in played.items()
    }
    results = {
        "command": command,
        "metric": metric,
        "controller_trained": trained,
        "write_gate": "none",  # a bank lives as long as its episode: no score is known when a step is admitted
        "variants": variants,
    }
    write_text(folder / "results.json", json.dumps(results, indent=1) + "\n")
    lines = [{"variant": variant, **episode_to_dict(each)} for variant, group in played.items() for each in group]
    write_text(folder / "episodes.jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


if __name__ == "__main__":
    main(sys.argv[1:])
