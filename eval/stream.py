"""Evaluate a stream's agents and memory on the held-out tasks, by ``Trainer.test``.

    python eval.py --run runs/comem/0

The memory is as the run left it: frozen, or learning on with ``--update_every``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from data.datamodule import TaskDataModule
from data.environment import WorldBenchmark
from data.task import Benchmark
from eval.report import write_text
from lightning_modules.cli import build
from lightning_modules.task_stream import TEST_RESULTS, TaskStream
from rollout.mas.mas import MAS


@dataclass(frozen=True)
class StreamEvalSettings:
    """Those of :class:`eval.cli.EvalSettings` that mean something here."""

    benchmark: Benchmark | WorldBenchmark | None = None
    mas: MAS | None = None
    split: str | None = None
    limit: int | None = None
    update_every: int = 0


def evaluate_stream(run: Path, settings: StreamEvalSettings, command: str) -> None:
    """Play, print the table, write ``test_results.json`` and ``results.md`` into a folder below ``run / "eval"``."""
    other = [settings.benchmark and settings.benchmark.name, settings.split, settings.mas and settings.mas.name]
    folder = run / "eval" / "_".join(name for name in other if name)
    flags = ["--trainer.logger", "false", "--trainer.default_root_dir", str(folder)]
    cli = build(["--config", str(run / "config.yaml"), *flags])
    module, data = cli.model, cli.datamodule
    if not isinstance(module, TaskStream) or not isinstance(data, TaskDataModule) or data.stream is None:
        raise SystemExit(f"{run} is no run of TaskStream on a TaskDataModule with data.stream")
    data.benchmark = settings.benchmark or data.benchmark
    data.validation_split = settings.split or ("test" if settings.benchmark else data.validation_split)
    data.validation_limit = data.validation_limit if settings.limit is None else settings.limit
    data.stream = replace(data.stream, tasks_in_flight=settings.update_every or data.stream.tasks_in_flight)
    module.mas = settings.mas or module.mas
    module.learns_in_test = settings.update_every > 0
    folder.mkdir(parents=True, exist_ok=True)
    cli.trainer.test(module, data, ckpt_path=run / "checkpoints" / "last.ckpt", weights_only=True, verbose=False)
    results = json.loads((folder / TEST_RESULTS).read_text(encoding="utf-8"))
    text = table(results)
    write_text(folder / TEST_RESULTS, json.dumps({"command": command, "run": str(run), **results}, indent=2) + "\n")
    write_text(folder / "results.md", f"{text}\n## Run it again\n\n```\n{command}\n```\n")
    print(f"\n{text}\nwrote {folder / TEST_RESULTS}, results.md and comem_events.jsonl beside it")


def table(results: dict[str, Any]) -> str:
    """Markdown: all episodes, then each type of task."""
    metrics = sorted(results["mean"])
    rows = [("all", results["episodes"], results["mean"])]
    rows += [(name, of["episodes"], of) for name, of in sorted(results["by_type"].items())]
    lines = [
        f"# {results['benchmark']}, {results['split']}, {results['mas']}, memory {results['memory']}: "
        f"{results['memory_is']}",
        "",
        f"{results['failed']} of {results['episodes']} episodes broke off or ran out of steps.",
        "",
        f"| tasks | episodes | {' | '.join(metrics)} |",
        "|---" * (len(metrics) + 2) + "|",
    ]
    lines += [f"| {name} | {count} | {' | '.join(f'{of[m]:.3f}' for m in metrics)} |" for name, count, of in rows]
    return "\n".join(lines) + "\n"
