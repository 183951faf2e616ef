"""The figure is drawn for what an evaluation can bring, without a display."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.image import imread

from eval.plot import LABELS, plot_results
from eval.rows import MEMORIES, Row


def row(memory: str, exact: float = 0.4, n: int = 150) -> Row:
    ci = (max(0.0, exact - 0.1), min(1.0, exact + 0.1))
    scores = dict.fromkeys(METRICS, exact)
    return Row(memory, n, scores, dict.fromkeys(METRICS, ci), 186, 120, 50, 16, 0.2, 30)


METRICS = ("exact_match", "token_f1", "lax_match")


def test_png_is_an_image_with_ink(tmp_path: Path) -> None:
    image = imread(plot_results([row(memory) for memory in MEMORIES], tmp_path / "plots" / "results.png"))
    height, width = image.shape[:2]
    assert width > 1000
    assert height > 400
    assert image.min() < image.max()


def test_pdf_by_suffix(tmp_path: Path) -> None:
    path = plot_results([row("none"), row("my_memory")], tmp_path / "results.pdf")
    assert path.read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("rows", [[row("none", 0.0)], [row("none", 1.0), row("text", 0.0, n=3)]])
def test_extremes_are_drawn(tmp_path: Path, rows: list[Row]) -> None:
    assert plot_results(rows, tmp_path / "results.png").stat().st_size > 0


def test_a_benchmark_of_one_metric_is_drawn(tmp_path: Path) -> None:
    only = Row("none", 40, {"passed": 0.25}, {"passed": (0.14, 0.4)}, 900, 800, 100, 0, 1.5, 60)
    assert plot_results([only], tmp_path / "results.png").stat().st_size > 0


def test_no_rows_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are no rows"):
        plot_results([], tmp_path / "results.png")


def test_every_memory_of_the_table_has_a_label() -> None:
    assert set(LABELS) == set(MEMORIES)
