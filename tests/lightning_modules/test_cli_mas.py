"""How a MAS is chosen on the command line, and what is refused there before anything is built that costs time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from jsonargparse import Namespace

from lightning_modules.cli import SYSTEMS, Parser
from lightning_modules.nearest_key import with_nearest_class
from rollout.mas.dylan import DyLAN
from rollout.mas.macnet import MacNet
from rollout.mas.mas import MAS

CONFIGS = Path(__file__).parents[2] / "configs" / "mas"
SHORT = [each.__name__ for each in SYSTEMS]


class Model:
    def __init__(self, mas: MAS) -> None:
        self.mas = mas


def parse(args: Sequence[str]) -> MAS:
    """As ``train.py`` parses its model, with nothing in it but the MAS."""
    parser = Parser()
    parser.add_subclass_arguments(Model, "model", fail_untyped=False, required=True)
    flags = [f"--model.init_args.{arg}" for arg in args]
    parsed: Namespace = parser.instantiate_classes(parser.parse_args([f"--model={__name__}.Model", *flags]))
    chosen: MAS = parsed.model.mas
    return chosen


@pytest.mark.parametrize("each", SYSTEMS, ids=SHORT)
def test_a_mas_goes_by_its_class_path_its_short_name_and_its_file(each: type) -> None:
    path = CONFIGS / f"{each.__name__.lower()}.yaml"
    for choice in (f"{each.__module__}.{each.__name__}", each.__name__, str(path)):
        assert type(parse([f"mas={choice}"])) is each


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_file_says_what_the_defaults_are(path: Path) -> None:
    written = yaml.safe_load(path.read_text(encoding="utf-8"))
    chosen = parse([f"mas={path}"])
    assert written["class_path"] == f"{type(chosen).__module__}.{type(chosen).__name__}"
    assert vars(chosen) == vars(type(chosen)())


def test_settings_go_on_top_of_a_file() -> None:
    mas = parse([f"mas={CONFIGS / 'macnet.yaml'}", "mas.topology=layered", "mas.agents_total=14"])
    assert isinstance(mas, MacNet)
    assert mas.waves == ((0, 1, 2), (3, 4), (5,))
    given = parse(["mas=MacNet", "mas.edges=[[2, 1], [1, 0]]"])
    assert isinstance(given, MacNet)
    assert given.sink == 0
    debate = parse(["mas=DyLAN", "mas.team=[critic, critic, expert]", "mas.rounds=2"])
    assert isinstance(debate, DyLAN)
    assert (debate.team, debate.rounds) == (("critic", "critic", "expert"), 2)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("mas=MacNett", "rollout.mas.macnet.MacNet"),
        ("mas=dylan", "rollout.mas.dylan.DyLAN"),
        ("mas=rollout.mas.camel.Camel", "rollout.mas.camel.CAMEL"),
        ("mas=rollout.mas.autogenn.AutoGen", "rollout.mas.autogen.AutoGen"),
    ],
)
def test_an_unknown_mas_is_refused_with_the_nearest_name(
    written: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse([written])
    complaint = capsys.readouterr().err
    assert f"did you mean {meant!r}?" in complaint
    assert "mas" in complaint


def test_an_unknown_setting_of_a_mas_is_refused_with_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["mas=MacNet", "mas.topologgy=chain"])
    assert "did you mean 'topology'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["mas.topology=chian"], r"mas\.init_args\.topology is 'chian'.*did you mean 'chain'"),
        (["mas.topology=net"], r"mas\.init_args\.agents_total is 5.*3, 6, 10, 15"),
        (["mas.edges=[[0, 1], [1, 0]]"], r"mas\.init_args\.edges has the cycle"),
        (["mas.edges=[[0, 1], [2, 3]]"], r"mas\.init_args\.edges: no edge connects"),
    ],
)
def test_a_mas_that_cannot_be_is_refused_with_the_path_of_the_key(args: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(["mas=MacNet", *args])


def test_other_complaints_are_left_alone() -> None:
    assert with_nearest_class("the weather is bad", SYSTEMS) == "the weather is bad"
    unknown = with_nearest_class("Expected a dot import path string: Zebra", SYSTEMS)
    assert unknown == "Expected a dot import path string: Zebra\nunknown class 'Zebra'"
