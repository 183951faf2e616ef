"""How measures of LTS are written in its tables: names, units, and a dash for what there is none of."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import stdev

from data.environment import WorldBenchmark
from data.task import Benchmark, Task
from rollout.admission import Variant
from rollout.team_measures import Measures
from rollout.teams_episode import TeamsEpisode

NAMES: dict[Variant, str] = {
    "none": "none (M1-Parallel)",
    "add_all": "LTS-AddAll",
    "llm": "LTS-LLM",
    "orchestrator": "orchestrator",
    "lts": "LTS",
}
"""What the paper calls the variants."""

DIFFICULTIES = ("Easy", "Medium", "Hard")
"""AssistantBench's, in the paper's order."""

Cells = dict[str, str]
"""Column to what stands in it."""


def runtime_title(simulated: bool) -> str:
    """Whose seconds they are stands wherever they do."""
    return "runtime, simulated s" if simulated else "runtime, s"


def score_runtime(measures: Measures) -> Cells:
    """Tables 2, 5, 6 and 7."""
    return {"score %": percent(measures.score), runtime_title(measures.simulated): f"{measures.runtime_s:.0f}"}


def utilisation(measures: Measures) -> Cells:
    """Table 3."""
    return {
        "memories saved %": decimal(measures.saved),
        "memory recall %": decimal(measures.recall),
        "cross-team recall %": decimal(measures.cross_team_recall),
    }


def costs(measures: Measures) -> Cells:
    """What else is known of a variant. The controller's share of a simulated run would mean nothing."""
    milliseconds = None if measures.decision_s is None else 1000 * measures.decision_s
    share = None if measures.simulated or measures.decision_s is None else measures.decision_share
    return {
        "R_first %": percent(measures.score_first),
        "steps": decimal(measures.steps),
        "tokens": f"{measures.tokens:.0f}",
        "ms a decision": decimal(milliseconds),
        "decisions' share of runtime %": decimal(share, 2),
        "failed teams": str(measures.failed_teams),
        "failed episodes": str(measures.failed),
    }


def level_of(task: Task) -> str:
    """GAIA's level or AssistantBench's difficulty; "" for a task without one."""
    if "level" in task.metadata:
        return f"level {task.metadata['level']}"
    return str(task.metadata.get("difficulty") or "")


def levels_of(tasks: Sequence[Task]) -> list[str]:
    """The levels that occur, easy ones first."""
    found = {level_of(task) for task in tasks} - {""}
    return sorted(found, key=lambda level: (DIFFICULTIES.index(level) if level in DIFFICULTIES else -1, level))


def standard_error(episodes: Sequence[TeamsEpisode], metric: str) -> float:
    """Of the mean score, over tasks; 0 for a single one."""
    scores = [episode.score[metric] for episode in episodes]
    return stdev(scores) / sqrt(len(scores)) if len(scores) > 1 else 0.0


def check_scored(benchmark: Benchmark | WorldBenchmark, tasks: Sequence[Task], metric: str) -> None:
    """Refuse tasks whose answers are not published, before anything is played on them.

    Raises ``SystemExit`` for no tasks, or tasks that ``benchmark`` gives no ``metric``.
    """
    if not tasks:
        raise SystemExit("there are no tasks to evaluate on; check the split and the limit")
    score = getattr(benchmark, "score", None)
    if score is None:
        raise SystemExit(f"{benchmark.name} is a world to act in; teams answer questions")
    without = [task.id for task in tasks if metric not in score(task, "")]
    if without:
        raise SystemExit(
            f"{len(without)} of {len(tasks)} tasks have no {metric!r}, the first is {without[0]}: {benchmark.name} "
            f"does not publish their answers, or it has no such measure ({', '.join(benchmark.metrics)}); "
            "choose another split, or another model.init_args.reinforce.reward"
        )


def markdown(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A titled table."""
    lines = [f"## {title}", "", f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def percent(share: float) -> str:
    """One decimal."""
    return f"{100 * share:.1f}"


def decimal(value: float | None, digits: int = 1) -> str:
    """A dash for ``None``."""
    return "–" if value is None else f"{value:.{digits}f}"
