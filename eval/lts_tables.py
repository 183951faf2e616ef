"""The LTS paper's Tables 1, 2, 3, 5, 6 and 7 in form: admission variants × measures, K sweep, summary lengths.

    python eval.py --config configs/eval/lts.yaml

Table 4, the ablation of the training objective, needs controllers of its own: ``python -m eval.lts_gym``. Where teams
are simulated, the tables say so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch

from data.datamodule import TaskDataModule
from data.task import Task
from eval.report import write_text
from lightning_modules.cli import build, latest_run
from lightning_modules.lts import LTS
from rollout.admission import Variant
from rollout.seeds import call_seed
from rollout.team_measures import Measures, measure, runtime_cdf
from rollout.teams_episode import TeamsEpisode


@dataclass(frozen=True)
class LTSEvalSettings:
    """What to tabulate.

    Attributes:
        run: a run directory of LTS; the latest below ``runs/<name>`` by default.
        name: of the training config, to find the run.
        team_counts: K of Table 5 (paper: 2, 5, 10).
        limit: only the first held-out tasks; all by default.
        seed: of everything that is left to chance, the same for all rows.
    """

    run: Path | None = None
    name: str = "lts_gym"
    team_counts: tuple[int, ...] = (2, 5, 10)
    limit: int | None = None
    seed: int = 0


class Played:
    """Plays each condition once, however many tables it stands in."""

    def __init__(self, module: LTS, tasks: Sequence[Task], seed: int) -> None:
        self._module = module
        self._tasks = tasks
        self._seed = call_seed(seed, 0, "eval", 0, 0)
        self._teams = cast(Any, module.teams)
        self.metric = module.reinforce.reward
        self.episodes: dict[tuple[Variant, int, str], list[TeamsEpisode]] = {}

    def __call__(self, variant: Variant, teams: int | None = None, summary: str = "short") -> list[TeamsEpisode]:
        """Episodes of one condition, in task order; ``teams`` is the run's K unless given."""
        count = self._teams.teams if teams is None else teams
        key = (variant, count, summary)
        if key not in self.episodes:
            self._module.teams = replace(self._teams, teams=count, summary=summary)
            controller = self._module.admission(epoch=0, temperature=0.0)
            with torch.no_grad():
                self.episodes[key] = self._module.play(self._tasks, 1, self._seed, variant, controller)
        return self.episodes[key]

    def measures(self, variant: Variant, teams: int | None = None, summary: str = "short") -> Measures:
        """Measures of one condition."""
        return measure(self(variant, teams, summary), self.metric)


def evaluate_lts(settings: LTSEvalSettings, command: str) -> None:
    """Print the tables of one run and write them beside it as ``lts_tables.md`` and ``lts_results.json``."""
    run = settings.run or latest_run(Path("runs") / settings.name)
    if run is None:
        raise SystemExit(
            f"there is no finished run below runs/{settings.name}; run "
            f"`python train.py --config configs/train/{settings.name}.yaml` first, or give --lts.run"
        )
    module, data = load_run(run)
    played = Played(module, data.held_out()[: settings.limit], settings.seed)
    text = tables(played, settings.team_counts)
    module.teardown("test")
    print(text)
    write_text(run / "lts_tables.md", f"{text}\n## Run it again\n\n```\n{command}\n```\n")
    write_text(run / "lts_results.json", json.dumps(results(played, command, run), indent=1) + "\n")
    print(f"wrote {run / 'lts_tables.md'} and lts_results.json beside it")


def load_run(run: Path) -> tuple[LTS, TaskDataModule]:
    """Module with the run's last weights, and its data."""
    cli = build(["--config", str(run / "config.yaml")])
    if not isinstance(cli.model, LTS) or not isinstance(cli.datamodule, TaskDataModule):
        raise SystemExit(f"{run} is no run of LTS on a TaskDataModule")
    checkpoint = torch.load(run / "checkpoints" / "last.ckpt", map_location="cpu", weights_only=True)
    cli.model.load_state_dict(checkpoint["state_dict"], strict=False)
    cli.model.eval()
    return cli.model, cli.datamodule


def tables(played: Played, team_counts: Sequence[int]) -> str:
    """All tables as Markdown."""
    simulated = played("none")[0].simulated
    note = "Teams are SIMULATED and so is their clock: no figure here is one of GAIA or AssistantBench.\n"
    parts = [
        f"# LTS, {len(played('none'))} held-out tasks\n",
        note if simulated else "",
        _table_1(played),
        _variants("Table 2: admission strategies", played, ("none", "add_all", "llm", "lts"), _score_runtime),
        _variants("Table 3: selectivity and utilisation", played, ("add_all", "llm", "lts"), _utilisation),
        _table_5(played, team_counts),
        _table_6(played),
        _variants("Table 7: who decides", played, ("llm", "orchestrator", "lts"), _score_runtime),
        _variants("Everything else", played, ("none", "add_all", "llm", "orchestrator", "lts"), _others),
    ]
    return "\n".join(part for part in parts if part)


def results(played: Played, command: str, run: Path) -> dict[str, object]:
    """Every condition with its measures and its runtime CDF, as JSON values."""
    conditions = [
        {
            "variant": variant,
            "teams": teams,
            "summary": summary,
            **asdict(measure(episodes, played.metric)),
            "runtime_cdf": runtime_cdf(episodes),
        }
        for (variant, teams, summary), episodes in played.episodes.items()
    ]
    return {"command": command, "run": str(run), "metric": played.metric, "conditions": conditions}


def _table_1(played: Played) -> str:
    rows = []
    levels = sorted({int(cast(int, episode.task.metadata["level"])) for episode in played("none")})
    methods: tuple[tuple[str, Variant, int | None], ...] = (
        ("MagenticOne (K = 1)", "none", 1),
        ("M1-Parallel", "none", None),
        ("Learning to Share", "lts", None),
    )
    for name, variant, teams in methods:
        episodes = played(variant, teams)
        by_level = [
            measure([each for each in episodes if each.task.metadata["level"] == level], played.metric).score
            for level in levels
        ]
        rows.append([name, *map(_percent, by_level), *_score_runtime(played.measures(variant, teams)).values()])
    return _markdown("Table 1: methods", ["method", *(f"level {level}" for level in levels), "all", "runtime s"], rows)


def _table_5(played: Played, counts: Sequence[int]) -> str:
    methods: tuple[tuple[str, Variant], ...] = (("M1-Parallel", "none"), ("LTS", "lts"))
    rows = [
        [name, str(count), *_score_runtime(played.measures(variant, count)).values()]
        for count in counts
        for name, variant in methods
    ]
    return _markdown("Table 5: number of teams", ["method", "K", "score %", "runtime s"], rows)


def _table_6(played: Played) -> str:
    rows = [["no summary (M1-Parallel)", *_score_runtime(played.measures("none")).values()]]
    for length, words in (("short", "15-20 words"), ("long", "45-50 words")):
        rows.append([f"{length} ({words})", *_score_runtime(played.measures("lts", summary=length)).values()])
    return _markdown("Table 6: length of summaries", ["summary", "score %", "runtime s"], rows)


def _variants(title: str, played: Played, variants: Sequence[Variant], cells: Any) -> str:
    found = {variant: cells(played.measures(variant)) for variant in variants}
    head = ["variant", *found[variants[0]]]
    return _markdown(title, head, [[variant, *values.values()] for variant, values in found.items()])


def _score_runtime(measures: Measures) -> dict[str, str]:
    return {"score %": _percent(measures.score), "runtime s": f"{measures.runtime_s:.0f}"}


def _utilisation(measures: Measures) -> dict[str, str]:
    values = (measures.saved, measures.recall, measures.cross_team_recall)
    names = ("memories saved %", "memory recall %", "cross-team recall %")
    return {name: "–" if value is None else f"{value:.1f}" for name, value in zip(names, values, strict=True)}


def _others(measures: Measures) -> dict[str, str]:
    return {
        "R_agg %": _percent(measures.score),
        "R_first %": _percent(measures.score_first),
        "steps": f"{measures.steps:.1f}",
        "tokens": f"{measures.tokens:.0f}",
        "decisions' share of wall clock %": f"{measures.decision_share:.1f}",
    }


def _markdown(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"## {title}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"
