"""The simulation's world does what its page says, and the pattern that its figure shows holds in a shorter run too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from eval.comem_simulation import VARIANTS, main, mean, simulate, table
from eval.comem_simulation_plot import moving_means
from eval.comem_world import AGENTS, ROLES, Rules, ScriptedWorld, TopicEncoder, helps, is_proven_good

WORLD = ScriptedWorld(0, Rules(base=0.4, help=0.5, harm=0.2))
GOOD, OWN, BAD = (
    "topic 1: lesson 0 for everyone habit0",
    "topic 1: lesson 0 for scout habit0",
    "topic 1: misleading advice 7",
)


def test_success_depends_on_what_is_injected_in_the_known_way() -> None:
    assert WORLD.chance("scout", "topic 1", []) == pytest.approx(0.4)
    assert WORLD.chance("scout", "topic 1", [GOOD]) == pytest.approx(0.9)
    assert WORLD.chance("scout", "topic 1", [OWN, BAD]) == pytest.approx(0.8)
    assert WORLD.chance("actor", "topic 1", [OWN]) == pytest.approx(0.2)
    assert WORLD.chance("scout", "topic 2", [GOOD]) == pytest.approx(0.4)  # good, but not for this topic


def test_whom_an_insight_helps() -> None:
    assert is_proven_good(GOOD)
    assert not is_proven_good(OWN)
    assert [helps(OWN, agent) for agent in ROLES] == [True, False, False, False]
    assert WORLD.misleading({"scout": [GOOD, BAD], "actor": [OWN]}) == pytest.approx(2 / 3)
    assert WORLD.misleading({"scout": []}) == 0


def test_the_world_is_a_pure_function_of_its_seed() -> None:
    nothing: dict[str, list[str]] = {agent.name: [] for agent in AGENTS}
    assert WORLD.play(5, nothing) == ScriptedWorld(0, WORLD.rules).play(5, nothing)
    assert [ScriptedWorld(1).task(n).question for n in range(20)] != [WORLD.task(n).question for n in range(20)]
    assert all(0 <= WORLD.judge(n, "scout", GOOD) <= 10 for n in range(50))


def test_texts_on_one_topic_lie_together() -> None:
    one, same, other = TopicEncoder().encode([GOOD, BAD, "topic 2: lesson"])
    assert float(one @ same) > float(one @ other) + 0.2
    assert float(np.linalg.norm(one)) == pytest.approx(1, abs=1e-5)


def test_flat_memory_is_polluted_where_comem_is_not() -> None:
    runs = {variant.name: simulate(variant, 240) for variant in VARIANTS}
    late = {name: rows[-80:] for name, rows in runs.items()}
    comem, flat = late["CoMem"], late["flat shared"]

    def figure(name: str, key: str) -> float:
        value = mean(late[name], key)
        assert value is not None
        return value

    assert figure("CoMem", "misleading") < figure("flat shared", "misleading")
    assert figure("CoMem", "precision") > figure("flat shared", "precision")
    assert figure("CoMem", "reward") > figure("flat shared", "reward")
    assert figure("CoMem", "action_similarity") < figure("flat shared", "action_similarity")
    assert (
        max(row["largest_private"] for row in runs["CoMem"]) <= 24
    )  # one insight an episode, K_max = 5, and what is used
    assert comem[-1]["pool"] < flat[-1]["pool"]
    assert {row["pool"] for row in runs["private only"]} == {0}
    assert all("noise" not in row for row in runs["no memory"])


def test_means_and_tables() -> None:
    rows = [{"a": 1.0}, {"a": 3.0, "noise": 0.5}, {}]
    assert mean(rows, "a") == 2.0
    assert mean(rows, "b") is None
    assert moving_means([{"a": float(n)} for n in range(4)], "a", 2) == ([1, 2, 3], [0.5, 1.5, 2.5])
    assert "| x | – | 0.50 | – |" in table({"x": rows}, slice(None), "All")


def test_one_command_writes_the_page_and_the_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--episodes", "104", "--out", str(tmp_path)])
    page = (tmp_path / "comem_simulation.md").read_text(encoding="utf-8")
    assert "**This is a simulation.**" in page
    assert page.count("| CoMem |") == 3  # its first and last quarter, and under better distillers
    assert (tmp_path / "comem_simulation.png").stat().st_size > 10_000
    assert capsys.readouterr().out.count("simulation: ") == len(VARIANTS)
