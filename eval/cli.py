"""The command line of ``eval.py``."""

from __future__ import annotations

import importlib.metadata
import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import yaml
from jsonargparse import ArgumentParser

from data.bounds import check_at_least
from data.datamodule import TaskDataModule
from data.environment import WorldBenchmark
from data.leakage import bank_leaks
from data.task import Benchmark, Task
from eval.evaluate import Answers, answer_all, checkpoint_of, load_bank
from eval.lts_tables import LTSEvalSettings, evaluate_lts
from eval.plot import plot_results
from eval.report import comparison_line, console_table, write_answers, write_results
from eval.rows import MEMORIES, compare_memories, rows_from_outcomes, shared_metrics
from eval.stream import StreamEvalSettings, evaluate_stream
from lightning_modules.cli import build, latest_run
from lightning_modules.latentmem import LatentMem
from lightning_modules.task_stream import TaskStream
from rollout.mas.mas import MAS

PACKAGES = ("torch", "lightning", "transformers", "peft", "faiss-cpu", "sentence-transformers")


@dataclass(frozen=True)
class EvalSettings:
    """What to evaluate.

    Attributes:
        run: a run directory of ``train.py``; the latest quickstart run by default.
        memories: rows of the table, in order: ``none,latentmem`` or ``[none, latentmem]``.
        benchmark: what to evaluate on, where it is not what the run was trained on (LatentMem's held-out domains).
        mas: which agents act, where it is not the run's own (LatentMem's unseen MAS).
        split: of the benchmark; the run's validation split by default, ``test`` of another benchmark.
        limit: only the first items; of the run's own benchmark its validation limit by default.
        update_every: 0 freezes the memory (default). Else it goes on learning from what is evaluated: LatentMem's bank
            takes in the answers of every so many items, CoMem ends the episodes of every so many together.
        lts: the tables of the LTS paper in place of a comparison of memories.
    """

    run: Path | None = None
    memories: tuple[str, ...] | str = MEMORIES
    benchmark: Benchmark | WorldBenchmark | None = None
    mas: MAS | None = None
    split: str | None = None
    limit: int | None = None
    update_every: int = 0
    lts: LTSEvalSettings | None = None

    def __post_init__(self) -> None:
        check_at_least(0, "", update_every=self.update_every)

    @property
    def names(self) -> tuple[str, ...]:
        """``memories`` as a list, however it was given."""
        if isinstance(self.memories, str):
            return tuple(name.strip() for name in self.memories.split(","))
        return tuple(self.memories)


def main(args: Sequence[str]) -> None:
    """Evaluate, print the table, write the files."""
    parser = ArgumentParser(prog="eval.py", description=__doc__)
    parser.add_argument("--config", action="config", help="a YAML file with the flags below")
    parser.add_class_arguments(EvalSettings, as_group=False)
    parsed = parser.instantiate_classes(parser.parse_args(list(args))).as_dict()
    parsed.pop("config")
    settings = EvalSettings(**parsed)
    command = shlex.join(["python", "eval.py", *args])
    if settings.lts is not None:
        return evaluate_lts(settings.lts, command)
    run = settings.run or latest_run(Path("runs") / "quickstart")
    if run is None:
        raise SystemExit("there is no finished run below runs/quickstart; run `python train.py` first, or give --run")
    return evaluate_run(run, settings, command)


def evaluate_run(run: Path, settings: EvalSettings, command: str) -> None:
    """Evaluate one run directory.

    Results on the run's own held-out items and MAS go into it, any other into a folder of their own below ``eval``.
    """
    model = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))["model"]["class_path"]
    if model.rpartition(".")[2] == TaskStream.__name__:
        given = {name: value for name, value in vars(settings).items() if name in StreamEvalSettings.__annotations__}
        evaluate_stream(run, StreamEvalSettings(**given), command)
        return
    for memory in settings.names:
        checkpoint_of(memory, run)  # a missing checkpoint shows before minutes of work do
    cli = build(["--config", str(run / "config.yaml")])
    module, data = cli.model, cli.datamodule
    if not isinstance(module, LatentMem) or not isinstance(data, TaskDataModule):
        raise SystemExit(f"{run}: eval.py knows runs of LatentMem and TaskStream, and with --lts those of LTS")
    benchmark = settings.benchmark or data.benchmark
    split = settings.split or (data.validation_split if settings.benchmark is None else "test")
    own_items = settings.benchmark is None and settings.split is None
    tasks = (data.held_out() if own_items else benchmark.tasks(split))[: settings.limit]
    module.to(cli.trainer.strategy.root_device)
    load_bank(module, run)
    module.mas = settings.mas or module.mas
    own = own_items and settings.mas is None
    folder = run if own else run / "eval" / f"{benchmark.name}_{split}_{module.mas.name}"
    names = {"benchmark": benchmark.name, "mas": module.mas.name}
    about = {**names, **_settings(run, settings, module, split, tasks, command)}  # of the bank as training left it
    runner = module.connect(benchmark, folder / "eval_trace.jsonl")
    try:
        answers = answer_all(module, runner, tasks, settings.names, run, settings.update_every)
    finally:
        runner.close()
    _report(folder, answers, benchmark.metrics, about)


def _report(folder: Path, answers: Answers, scored: Sequence[str], settings: dict[str, object]) -> None:
    write_answers(folder, answers.outcomes)
    metrics = shared_metrics(answers.outcomes, scored)
    unscored = [metric for metric in scored if metric not in metrics]
    if unscored:
        print(f"warning: not every item has a score in {', '.join(unscored)}: the table is without (hidden answers?)")
    rows = rows_from_outcomes(answers.outcomes, answers.seconds, metrics)
    comparisons = compare_memories(answers.outcomes, metrics)
    write_results(folder, rows, comparisons, {**settings, "metrics_left_out": unscored})
    plot_results(rows, folder / "results.png")
    print(f"\n{console_table(rows)}\n")
    for comparison in comparisons:
        print(comparison_line(comparison))
    print(f"\nwrote {folder / 'results.json'}, results.md, results.png and answers.jsonl beside it")


def _settings(
    run: Path, settings: EvalSettings, module: LatentMem, split: str, tasks: Sequence[Task], command: str
) -> dict[str, object]:
    leaks = [task.id for task in bank_leaks(module.bank.questions(), tasks)]
    if leaks:
        print(f"warning: the bank holds {len(leaks)} of the questions evaluated, the first is {leaks[0]}")
    return {
        "command": command,
        "run": str(run),
        "memories": list(settings.names),
        "checkpoints": {m: str(path) for m in settings.names if (path := checkpoint_of(m, run)) is not None},
        "split": split,
        "items": len(tasks),
        "temperature": 0.0,
        "bank_entries": len(module.bank),
        "bank": f"takes in every {settings.update_every} answers"
        if settings.update_every
        else "frozen during evaluation",
        "bank_leaks": leaks,
        "write_gate": module.bank_settings.write_gate,
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "threads": torch.get_num_threads(),
        "config": yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8")),
    }
