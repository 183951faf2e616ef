"""The LTS paper's Tables 1, 2, 3, 5, 6, 7 and Figure 3 in form: variants × measures, K sweep, summary lengths.

    python eval.py --config configs/eval/lts.yaml

Table 4, the ablation of the training objective, needs controllers of its own: ``python -m eval.lts_gym``. Where teams
are simulated, the tables say so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, cast

import torch

from data.task import Task
from eval.lts_cdf import cdf_table, plot_cdf
from eval.lts_columns import (
    NAMES,
    check_scored,
    costs,
    level_of,
    levels_of,
    markdown,
    percent,
    runtime_title,
    score_runtime,
    standard_error,
    utilisation,
)
from eval.lts_live import load
from eval.report import write_text
from lightning_modules.cli import latest_run
from lightning_modules.lts import LTS
from rollout.admission import VARIANTS, Variant
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
        self.teams: int = self._teams.teams
        self.metric = module.reinforce.reward
        self.episodes: dict[tuple[Variant, int, str], list[TeamsEpisode]] = {}

    def __call__(self, variant: Variant, teams: int | None = None, summary: str = "short") -> list[TeamsEpisode]:
        """Episodes of one condition, in task order; ``teams`` is the run's K unless given."""
        count = self.teams if teams is None else teams
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

    def variants(self) -> dict[str, list[TeamsEpisode]]:
        """Every variant's episodes by its name, at the run's K."""
        return {NAMES[variant]: self(variant) for variant in VARIANTS}


def evaluate_lts(settings: LTSEvalSettings, command: str) -> None:
    """Print the tables of one run and write them beside it as ``lts_tables.md``, with JSON and a plot."""
    run = settings.run or latest_run(Path("runs") / settings.name)
    if run is None:
        raise SystemExit(
            f"there is no finished run below runs/{settings.name}; run "
            f"`python train.py --config configs/train/{settings.name}.yaml` first, or give --lts.run"
        )
    module, data = load(str(run / "config.yaml"), run / "checkpoints" / "last.ckpt")
    tasks = data.held_out()[: settings.limit]
    check_scored(data.benchmark, tasks, module.reinforce.reward)
    played = Played(module, tasks, settings.seed)
    try:
        text = tables(played, settings.team_counts)
    finally:
        module.teardown("test")
    print(text)
    plot_cdf(played.variants(), run / "lts_runtime_cdf.png")
    write_text(run / "lts_tables.md", f"{text}\n## Run it again\n\n```\n{command}\n```\n")
    write_text(run / "lts_results.json", json.dumps(results(played, command, run), indent=1) + "\n")
    print(f"wrote {run / 'lts_tables.md'}, lts_results.json and lts_runtime_cdf.png beside it")


def tables(played: Played, team_counts: Sequence[int]) -> str:
    """All tables as Markdown."""
    episodes = played("none")
    error = 100 * max(standard_error(played(variant), played.metric) for variant in VARIANTS)
    title = f"# LTS, {len(episodes)} held-out tasks"
    if episodes[0].simulated:
        title += (
            ": a SIMULATION\n\nTeams, texts, prompted deciders, aggregator and clock are simulated; "
            "bank and controller are real.\nNo figure here is one of GAIA or AssistantBench."
        )
    notes = (
        f"Score: {played.metric} of the aggregate (R_agg), mean over tasks, one episode each; its standard error is at "
        f"most\n{error:.1f} points. K = {played.teams} unless a table says otherwise. Greedy decisions. Table 4, the "
        "ablation of the training\nobjective, needs controllers of its own: `python -m eval.lts_gym`.\n"
    )
    return "\n".join(
        [
            f"{title}\n\n{notes}",
            _table_1(played),
            _variants("Table 2: admission strategies", played, ("none", "add_all", "llm", "lts"), score_runtime),
            _variants("Table 3: selectivity and utilisation", played, ("add_all", "llm", "lts"), utilisation),
            _table_5(played, team_counts),
            _table_6(played),
            _variants("Table 7: who decides", played, ("llm", "orchestrator", "lts"), score_runtime),
            _variants("Further measures", played, VARIANTS, costs),
            cdf_table(played.variants()),
        ]
    )


def results(played: Played, command: str, run: Path) -> dict[str, object]:
    """Every condition with its measures and its runtime CDF, as JSON values."""
    conditions = [
        {
            "variant": variant,
            "teams": teams,
            "summary": summary,
            **asdict(measure(episodes, played.metric)),
            "standard_error": standard_error(episodes, played.metric),
            "runtime_cdf": runtime_cdf(episodes),
        }
        for (variant, teams, summary), episodes in played.episodes.items()
    ]
    about = {"command": command, "run": str(run), "metric": played.metric, "write_gate": "none"}
    return {**about, "conditions": conditions}


def _table_1(played: Played) -> str:
    tasks = [episode.task for episode in played("none")]
    levels = levels_of(tasks)
    sizes = [sum(level_of(task) == level for task in tasks) for level in levels]
    baseline = played.measures("none")
    methods: tuple[tuple[str, Variant, int | None, str], ...] = (
        ("MagenticOne", "none", 1, "✗"),
        ("M1-Parallel", "none", None, "✗"),
        ("Learning to Share", "lts", None, "✓"),
    )
    rows = []
    for name, variant, teams, shares in methods:
        episodes, measures = played(variant, teams), played.measures(variant, teams)
        by_level = [
            fmean(each.score[played.metric] for each in episodes if level_of(each.task) == level) for level in levels
        ]
        against = f"{100 * (measures.runtime_s / baseline.runtime_s - 1):+.1f} %" if variant == "lts" else ""
        count = str(teams or played.teams)
        rows.append([name, count, shares, *map(percent, by_level), *score_runtime(measures).values(), against])
    columns = [f"{level} (n={size})" for level, size in zip(levels, sizes, strict=True)]
    runtime = runtime_title(baseline.simulated)
    head = ["method", "K", "shared memory", *columns, f"all (n={len(tasks)})", runtime, "against M1-Parallel"]
    return markdown("Table 1: methods, score % by level", head, rows)


def _table_5(played: Played, counts: Sequence[int]) -> str:
    methods: tuple[tuple[str, Variant], ...] = (("M1-Parallel", "none"), ("LTS", "lts"))
    cells = [
        (name, count, score_runtime(played.measures(variant, count))) for count in counts for name, variant in methods
    ]
    head = ["method", "K", *cells[0][2]]
    title = "Table 5: number of teams, the same controller"
    return markdown(title, head, [[name, str(count), *each.values()] for name, count, each in cells])


def _table_6(played: Played) -> str:
    cells = {
        "no summary (M1-Parallel)": score_runtime(played.measures("none")),
        "short (15-20 words)": score_runtime(played.measures("lts")),
        "long (45-50 words)": score_runtime(played.measures("lts", summary="long")),
    }
    head = ["summary", *cells["short (15-20 words)"]]
    return markdown("Table 6: length of summaries", head, [[name, *each.values()] for name, each in cells.items()])


def _variants(
    title: str, played: Played, variants: Sequence[Variant], cells: Callable[[Measures], Mapping[str, str]]
) -> str:
    found = {NAMES[variant]: cells(played.measures(variant)) for variant in variants}
    head = ["variant", *found[NAMES[variants[0]]]]
    return markdown(title, head, [[name, *each.values()] for name, each in found.items()])
