"""Writing what was found: ``results.json`` for programs, ``results.md`` for people, ``answers.jsonl`` for doubts."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from eval.rows import Comparison, Outcome, Row


def write_results(
    directory: Path, rows: Sequence[Row], comparisons: Sequence[Comparison], settings: Mapping[str, object]
) -> Path:
    """Write ``results.json`` and ``results.md`` into ``directory``, each replaced whole or not at all.

    Args:
        settings: everything needed to run the evaluation again, as JSON values; ``command``, when there, is shown in
            ``results.md``.

    Returns:
        The path of ``results.json``.

    Raises:
        TypeError: a setting that JSON cannot hold; the message names its place.
    """
    results = {
        "rows": [row_to_dict(row) for row in rows],
        "paired_tests": [comparison_to_dict(comparison) for comparison in comparisons],
        "settings": settings,
    }
    path = directory / "results.json"
    write_text(path, json.dumps(_plain(results, "results"), indent=2, ensure_ascii=False) + "\n")
    write_text(directory / "results.md", markdown(rows, comparisons, settings))
    return path


def write_answers(directory: Path, outcomes: Mapping[str, Sequence[Outcome]]) -> Path:
    """Write ``answers.jsonl``: one line a task, with every memory's answer and scores side by side."""
    tasks: dict[str, dict[str, object]] = {}
    answers: dict[str, dict[str, object]] = {}
    for memory, found in outcomes.items():
        for outcome in found:
            tasks.setdefault(outcome.task_id, _about(outcome))
            failure = {"failure": outcome.failure} if outcome.failure else {}
            answers.setdefault(outcome.task_id, {})[memory] = {"answer": outcome.answer, **outcome.score, **failure}
    lines = [{**about, "by_memory": answers[task_id]} for task_id, about in tasks.items()]
    path = directory / "answers.jsonl"
    write_text(path, "".join(json.dumps(_plain(line, "answers"), ensure_ascii=False) + "\n" for line in lines))
    return path


def row_to_dict(row: Row) -> dict[str, object]:
    """One flat JSON object: every metric under its own name, its interval under the name with ``_ci``."""
    flat = asdict(row)
    scores, intervals = flat.pop("scores"), flat.pop("intervals")
    measured = {key: value for name in scores for key, value in ((name, scores[name]), (f"{name}_ci", intervals[name]))}
    return {"memory": flat.pop("memory"), "n": flat.pop("n"), **measured, **flat}


def metric_title(metric: str) -> str:
    """As a reader knows it: ``token_f1`` is token F1."""
    return " ".join("F1" if word == "f1" else word for word in metric.split("_"))


def comparison_to_dict(comparison: Comparison) -> dict[str, object]:
    """One flat JSON object: names, metric, difference with interval, p-value, and the counts behind it."""
    flat = asdict(comparison)
    return {**{key: value for key, value in flat.items() if key != "test"}, **flat["test"]}


def markdown(rows: Sequence[Row], comparisons: Sequence[Comparison], settings: Mapping[str, object]) -> str:
    """The whole of ``results.md``."""
    titles = [f"{metric_title(metric)} %" for metric in rows[0].scores]
    head = ("memory", "n", *titles, "tokens", "prompt", "output", "latent", "seconds")
    table = _aligned([head, *map(_long_cells, rows)], left="| ", gap=" | ", right=" |")
    names = [str(settings[key]) for key in ("benchmark", "split", "mas") if key in settings]
    title = "# Results" + (f": {', '.join(names)}" if names else "")
    lines = [title, "", table[0], _markdown_rule(table[0]), *table[1:], ""]
    lines += ["Intervals are of 95 %. Tokens (with latent positions) and seconds of wall clock are means a question."]
    if comparisons:
        lines += ["", "## Paired tests", ""]
        lines += [f"- {comparison_line(comparison)}" for comparison in comparisons]
        lines += ["", "Two-sided, not adjusted for the number of tests."]
    if "command" in settings:
        lines += ["", "## Run it again", "", "```", str(settings["command"]), "```"]
    return "\n".join(lines) + "\n"


def console_table(rows: Sequence[Row]) -> str:
    """The table as plain text under 80 columns: the same on a terminal, in a file and in a notebook."""
    titles = [f"{metric_title(metric)} %" for metric in rows[0].scores]
    lines = _aligned([("memory", *titles, "tokens/q", "s/q"), *map(_short_cells, rows)])
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def comparison_line(comparison: Comparison) -> str:
    """One sentence on one paired test, for the terminal and for ``results.md``."""
    test, (low, high) = comparison.test, comparison.difference_ci
    return (
        f"{comparison.second} against {comparison.first}, {metric_title(comparison.metric)}: "
        f"{100 * test.difference:+.1f} points [{100 * low:+.1f}, {100 * high:+.1f}], p = {_p_value(test.p_value)} "
        f"({comparison.method}; {test.better} better, {test.worse} worse of {test.n})"
    )


def write_text(path: Path, text: str) -> None:
    """Write ``text`` so that a reader sees the old file or the new one, never a part; makes the directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(temporary, path)


def _about(outcome: Outcome) -> dict[str, object]:
    return {"task_id": outcome.task_id, "question": outcome.question, "accepted": outcome.accepted}


def _short_cells(row: Row) -> tuple[str, ...]:
    """The interval of the headline metric alone: a terminal is narrow."""
    others = [_percent(value) for metric, value in row.scores.items() if metric != row.headline]
    return row.memory, _with_interval(row, row.headline), *others, f"{row.tokens:.0f}", f"{row.seconds:.2f}"


def _long_cells(row: Row) -> tuple[str, ...]:
    scores = [_with_interval(row, metric) for metric in row.scores]
    costs = [f"{cost:.1f}" for cost in (row.tokens, row.prompt_tokens, row.completion_tokens, row.latent_tokens)]
    return row.memory, str(row.n), *scores, *costs, f"{row.seconds:.3f}"


def _aligned(table: Sequence[Sequence[str]], left: str = "", gap: str = "  ", right: str = "") -> list[str]:
    """First column flush left, the others flush right, as wide as their widest cell."""
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    lines = []
    for head, *rest in table:
        cells = [head.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        lines.append(left + gap.join(cells) + right)
    return lines


def _markdown_rule(header: str) -> str:
    first, *others = header.strip("|").split("|")
    return "|" + "|".join(["-" * len(first), *("-" * (len(part) - 1) + ":" for part in others)]) + "|"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _with_interval(row: Row, metric: str) -> str:
    low, high = row.intervals[metric]
    return f"{_percent(row.scores[metric])} [{_percent(low)}, {_percent(high)}]"


def _p_value(value: float) -> str:
    return f"{value:.1e}" if value < 0.0001 else f"{value:.4f}"


def _plain(value: object, where: str) -> object:
    """``value`` as JSON values, or an error that names the place of what is none."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError(f"{where} is {value}, which JSON cannot hold: leave it out or give null")
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise TypeError(f"{where} is a {type(value).__name__}, not a JSON value: give a string, number, list or mapping")
