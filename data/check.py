"""Looks a data set over before a run needs it: ``python -m data.check NAME [PATH]``.

Prints for every split the number of items (and what the papers have, if it differs), how many records have each field,
and three examples. Ends with a status other than 0, and file, line and field, at the first malformed record. ``PATH``
is a local copy, or ``sample`` for the bundled one; the hub is asked without it.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from data.assistantbench import AssistantBench
from data.bigcodebench import BigCodeBench
from data.gaia import GAIA
from data.kodcode import KodCode
from data.records import Record
from data.short_answer import ShortAnswerQA
from data.source import SourceName
from data.splits import Splits
from data.strategyqa import StrategyQA
from data.task import Benchmark, Task


class Loaded(Benchmark, Protocol):
    """A benchmark that reads its tasks from records."""

    splits: Splits


BENCHMARKS: Mapping[str, Callable[[SourceName, str | None], Loaded]] = {
    "sample": lambda source, path: ShortAnswerQA("sample", path),
    "triviaqa": lambda source, path: ShortAnswerQA("sample" if source == "sample" else "triviaqa", path),
    "popqa": lambda source, path: ShortAnswerQA("popqa_sample" if source == "sample" else "popqa", path),
    "strategyqa": lambda source, path: StrategyQA(source, path),
    "kodcode": lambda source, path: KodCode(source, path),
    "bigcodebench": lambda source, path: BigCodeBench(source=source, path=path),
    "gaia": lambda source, path: GAIA(source, path),
    "assistantbench": lambda source, path: AssistantBench(source, path),
}
EXAMPLES = 3
SHOWN = 160
"""Characters of a question or an answer."""


def main(args: Sequence[str]) -> None:
    """Check one data set. Raises ``SystemExit`` with the message of what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m data.check", description="Look a data set over.")
    parser.add_argument("name", choices=list(BENCHMARKS))
    parser.add_argument("path", nargs="?", help="a file, a directory, or 'sample'; the hub by default")
    parsed = parser.parse_args(args)
    try:
        for line in check(parsed.name, parsed.path):
            print(line)
    except (ValueError, FileNotFoundError) as error:
        raise SystemExit(f"{parsed.name}: {error}") from error


def check(name: str, path: str | None) -> Iterator[str]:
    """The report, line by line. Raises ``ValueError`` or ``FileNotFoundError`` as the benchmark does."""
    sample = path == "sample"
    benchmark = BENCHMARKS[name]("sample" if sample else "published", None if sample else path)
    there = [split for split in benchmark.splits.layout if _is_there(benchmark.splits, split)]
    if not there:
        benchmark.splits.records(next(iter(benchmark.splits.layout)))
    for split in there:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # said below, with the count
            tasks = benchmark.tasks(split)
        records = [record for record, _ in benchmark.splits.records(split)]
        published = benchmark.splits.published.sizes.get(split, len(records))
        other = "" if sample or published == len(records) else f"; the papers have {published}"
        yield f"{split}: {len(tasks)} items of {len(records)} records{other}"
        files = attachments(benchmark, tasks) if isinstance(benchmark, GAIA) and path is not None else []
        yield from (f"  {line}" for line in (*coverage(records), *files, *map(example, tasks[:EXAMPLES])))
    if benchmark.splits.left_out:
        yield f"left out of train, since a held-out split asks them too: {len(benchmark.splits.left_out)}"
    if missing := [split for split in benchmark.splits.layout if split not in there]:
        yield f"not there: {', '.join(missing)}"


def coverage(records: Sequence[Record]) -> list[str]:
    """One line a field: in how many records it holds something."""
    filled = Counter(field for record in records for field, value in record.items() if value not in (None, "", [], {}))
    return [f"{field}: {count} of {len(records)}" for field, count in sorted(filled.items())]


def attachments(benchmark: GAIA, tasks: Sequence[Task]) -> list[str]:
    """How many of the files that the tasks come with a local copy has, and the first that it lacks."""
    wanted = [task for task in tasks if task.metadata["file_name"]]
    missing = [str(task.metadata["file_name"]) for task in wanted if not _has_file(benchmark, task)]
    lacking = f"; {missing[0]} is not" if missing else ""
    return [f"attached files: {len(wanted) - len(missing)} of {len(wanted)} are there{lacking}"]


def example(task: Task) -> str:
    """One line on a task."""
    answer = task.answers[0] if task.answers else "(hidden)"
    return f"{task.id}: {_short(task.question)} => {_short(answer)}"


def _is_there(splits: Splits, split: str) -> bool:
    try:
        return bool(splits.records(split))
    except FileNotFoundError:
        return False


def _has_file(benchmark: GAIA, task: Task) -> bool:
    try:
        return benchmark.attachment(task) is not None
    except FileNotFoundError:
        return False


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


if __name__ == "__main__":
    main(sys.argv[1:])
