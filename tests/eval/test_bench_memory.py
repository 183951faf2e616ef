"""The bench at a size that a test can wait for."""

from __future__ import annotations

import json

import numpy as np
import pytest

from eval.bench.memory import Cloud, churn, fill, main
from memory.comem.store import EntryStore


def test_vectors_are_of_length_one_around_their_centres() -> None:
    cloud = Cloud(5, 0.1, seed=0)
    drawn = cloud.draw(40)
    assert np.allclose(np.linalg.norm(drawn, axis=1), 1, atol=1e-5)
    assert float((drawn @ cloud.centres.T).max(axis=1).min()) > 0.95


def test_a_store_is_filled_to_its_size_and_churned_at_it() -> None:
    store, cloud = EntryStore(), Cloud(5, 0.1, seed=0)
    insert_us, pause_s = fill(store, cloud, 1000)
    assert len(store) == 1000
    assert 0 < insert_us * 1e-6 * 250 < pause_s * 5
    before = {entry.id for entry in store.entries()}
    assert churn(store, cloud) > 0
    after = {entry.id for entry in store.entries()}
    assert (len(after), len(before - after)) == (1000, 500)


def test_the_last_line_is_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--entries", "10000", "--queries", "10", "--centres", "50"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["1000", "10000"]
    result = json.loads(lines[-1])
    assert result["bench"] == "memory"
    assert (result["recall_at_3"] >= 0.95, result["entries"]) == (True, 10_000)  # 10,000 are searched approximately
    assert {"query_ms_1m", "growth"} <= result.keys()
