"""GAIA (Mialon et al., 2024): questions for assistants with tools, in three levels, some with a file.

The validation set has 165 questions: 53, 86 and 26 of levels 1 to 3. The answers of the test set are not published:
its tasks have none, and scoring them says only whether they were answered. There is nothing to train on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from data.records import Place, Record
from data.scoring.final_answer import final_answer
from data.scoring.gaia import score_gaia
from data.source import Hub, SourceName
from data.splits import Part, Published, Splits, having
from data.task import Score, Task

_FILES = ("2023/validation/metadata", "validation", "metadata")
_TEST_FILES = ("2023/test/metadata", "test")
_HIDDEN = "?"

PUBLISHED = Published(
    "gaia",
    Hub("gaia-benchmark/GAIA", "2023_all", gated=True),
    layout={
        "validation": Part("validation", files=_FILES),
        **{f"level{level}": Part("validation", having("Level", str(level)), _FILES) for level in (1, 2, 3)},
        # The test set begins with a greeting, which has no level.
        "test": Part("test", having("Level", "1", "2", "3"), _TEST_FILES),
    },
    sample="gaia",
    sizes={"validation": 165, "level1": 53, "level2": 86, "level3": 26},
)


class GAIA:
    """Splits ``validation``, ``level1`` to ``level3`` and ``test``. Implements :class:`data.task.Benchmark`.

    Args:
        source: ``published``, or ``sample`` for the bundled questions.
        path: a local copy: a file, or a directory such as a clone of the hub's repository; by default the hub is asked.
    """

    name = "gaia"
    metrics = ("exact_match", "answered")

    def __init__(self, source: SourceName = "published", path: str | Path | None = None) -> None:
        self.splits = Splits(PUBLISHED, gaia_task, source, path)

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of ``split``; raises as :class:`data.splits.Splits` does."""
        return self.splits.tasks(split)

    def score(self, task: Task, answer: str) -> Score:
        """``exact_match`` by the leaderboard's rule and ``answered``; only the latter without a gold answer."""
        if not task.answers:
            return {"answered": float(bool(final_answer(answer)))}
        return score_gaia(answer, task.answers[0])

    def attachment(self, task: Task) -> Path | None:
        """The file of a task, fetched from the hub if need be; ``None`` for a task without one.

        Raises ``FileNotFoundError`` for a local copy that lacks it.
        """
        name = str(task.metadata["file_name"])
        if not name:
            return None
        folder, root = str(task.metadata["folder"]), self.splits.path
        if root is None:
            from huggingface_hub import hf_hub_download

            return Path(hf_hub_download(PUBLISHED.hub.repository, f"{folder}/{name}", repo_type="dataset"))
        base = root.parent if root.is_file() else root
        for file in (base / name, base / folder / name):
            if file.is_file():
                return file
        raise FileNotFoundError(f"task {task.id} of gaia: {name} is not in {base} nor in {base / folder}")


def gaia_task(record: Record, place: Place) -> Task:
    """One row: ``task_id``, ``Question``, ``Level``, ``Final answer`` (``?`` where hidden), ``file_name``."""
    answer, level = place.text(record, "Final answer"), place.text(record, "Level")
    if level not in ("1", "2", "3"):
        raise place.error("Level", f"must be 1, 2 or 3, got {level!r}")
    file_name = place.optional_text(record, "file_name")
    if file_name != Path(file_name).name and file_name:
        raise place.error("file_name", f"must be the name of a file, got {file_name!r}")
    return Task(
        id=place.text(record, "task_id"),
        question=place.text(record, "Question"),
        answers=() if answer == _HIDDEN else (answer,),
        benchmark=GAIA.name,
        domain="web",
        metadata={
            "level": int(level),
            "file_name": file_name,
            "folder": "2023/test" if answer == _HIDDEN else "2023/validation",
        },
    )
