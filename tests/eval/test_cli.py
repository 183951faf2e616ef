"""One tiny run, evaluated on every benchmark: its own metrics, its own prompts, a folder of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from eval.cli import EvalSettings
from eval.cli import main as evaluate
from lightning_modules.cli import train
from rollout.prompt import load_prompts
from rollout.trace import TracedCall
from rollout.trace_reader import read_trace
from tests.tiny_run import CONFIGS, tiny_quickstart

COSTS = {"tokens", "prompt_tokens", "completion_tokens", "latent_tokens", "seconds", "seconds_total"}


@pytest.fixture(scope="module")
def run(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory of LatentMem on the bundled questions."""
    folder = tmp_path_factory.mktemp("evaluated")
    config = tiny_quickstart(folder, tiny_model_dir)
    flags = [f"--data.{stage}.steps=1" for stage in ("collect", "sft", "lmpo")]
    return train(["--config", str(config), *flags, "--runs", str(folder / "runs")]).run_directory


def results(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return found


def calls(folder: Path) -> list[TracedCall]:
    return [record for record in read_trace(folder / "eval_trace.jsonl") if isinstance(record, TracedCall)]


BENCHMARKS = {
    "popqa_sample": ("data.short_answer.ShortAnswerQA", "source=popqa_sample", "qa", "exact_match token_f1 lax_match"),
    "strategyqa": ("data.strategyqa.StrategyQA", "source=sample", "qa", "exact_match lax_match"),
    "kodcode": ("data.kodcode.KodCode", "source=sample", "code", "passed"),
    "bigcodebench": ("data.bigcodebench.BigCodeBench", "source=sample", "code", "passed"),
    "gaia": ("data.gaia.GAIA", "source=sample", "web", "exact_match answered"),
    "assistantbench": ("data.assistantbench.AssistantBench", "source=sample", "web", "accuracy exact_match answered"),
    "pddl_generated": ("data.pddl.benchmark.PDDLGames", "max_steps=20", "planning", "success progress grounding"),
}


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_benchmark_is_reported_in_its_own_metrics_and_asked_with_its_own_prompts(
    run: Path, benchmark: str
) -> None:
    name, init_arg, domain, metrics = BENCHMARKS[benchmark]
    split = "validation" if benchmark == "gaia" else "test"  # test unless told otherwise; the sample of GAIA has none
    chosen = ["--split", split] if split != "test" else []
    flags = ["--benchmark.class_path", name, f"--benchmark.init_args.{init_arg}", *chosen]
    evaluate(["--run", str(run), *flags, "--memories=none,latentmem", "--limit=2"])
    folder = run / "eval" / f"{benchmark}_{split}_autogen"
    found = results(folder)
    assert (found["settings"]["benchmark"], found["settings"]["split"]) == (benchmark, split)
    assert [row["memory"] for row in found["rows"]] == ["none", "latentmem"]
    own = [key for metric in metrics.split() for key in (metric, f"{metric}_ci")]
    for row in found["rows"]:
        assert list(row) == ["memory", "n", *own, *(key for key in row if key in COSTS), "failed"]
        assert all(row[f"{metric}_ci"][0] <= row[metric] <= row[f"{metric}_ci"][1] for metric in metrics.split())
        assert (row["n"], row["failed"]) == (2, 0)
    assert {test["metric"] for test in found["paired_tests"]} >= {metrics.split()[0]}
    assert (folder / "results.md").read_text("utf-8").startswith(f"# Results: {benchmark}, {split}, autogen\n")
    assert (folder / "results.png").stat().st_size > 1000
    told = load_prompts(domain).role("autogen", "assistant").templates["answer"].rpartition("}")[2].strip()
    assert all(told in call.prompt for call in calls(folder) if call.role == "assistant")


def test_unseen_agents_have_a_folder_of_their_own_and_the_runs_results_stay(run: Path) -> None:
    evaluate(["--run", str(run), "--memories", "none", "--limit", "2"])
    before = (run / "results.json").read_bytes()
    config = CONFIGS / "eval" / "unseen_camel.yaml"
    evaluate(["--config", str(config), "--run", str(run), "--memories", "none,latentmem", "--limit", "2"])
    assert (run / "results.json").read_bytes() == before
    folder = run / "eval" / "sample_test_camel"
    assert (results(folder)["settings"]["mas"], len(results(folder)["rows"])) == ("camel", 2)
    assert {call.latent_tokens for call in calls(folder) if call.phase == "eval/latentmem"} == {2}


def test_the_paper_s_held_out_domains_are_configs_whose_source_is_a_flag(run: Path) -> None:
    config = CONFIGS / "eval" / "heldout_bigcodebench.yaml"
    flags = ["--run", str(run), "--benchmark.init_args.source", "sample", "--memories", "none", "--limit", "1"]
    evaluate(["--config", str(config), *flags])
    assert results(run / "eval" / "bigcodebench_test_autogen")["settings"]["items"] == 1


def test_hidden_answers_are_said_to_be_hidden(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """GAIA's test answers are not published: there is nothing to report but whether there was an answer."""
    row = {"task_id": "a", "Question": "Which?", "Level": "1", "Final answer": "?", "file_name": ""}
    file = tmp_path / "2023" / "test" / "metadata.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(json.dumps({**row, "task_id": name}) for name in "ab") + "\n", encoding="utf-8")
    flags = ["--benchmark.class_path", "data.gaia.GAIA", "--benchmark.init_args.path", str(tmp_path)]
    evaluate(["--run", str(run), *flags, "--memories", "none"])
    assert "not every item has a score in exact_match" in capsys.readouterr().out
    found = results(run / "eval" / "gaia_test_autogen")
    assert found["settings"]["metrics_left_out"] == ["exact_match"]
    assert "answered" in found["rows"][0]
    assert "exact_match" not in found["rows"][0]


def test_a_mixture_is_reported_in_one_accuracy_over_its_domains(run: Path, tmp_path: Path) -> None:
    domains = [
        {"benchmark": {"class_path": name, "init_args": {"source": "sample"}}}
        for name in ("data.strategyqa.StrategyQA", "data.kodcode.KodCode")
    ]
    mixture = {"class_path": "data.mixture.BenchmarkMixture", "init_args": {"domains": domains}}
    config = tmp_path / "mixture.yaml"
    config.write_text(yaml.safe_dump({"benchmark": mixture, "memories": "none"}), encoding="utf-8")
    evaluate(["--config", str(config), "--run", str(run)])
    found = results(run / "eval" / "strategyqa+kodcode_test_autogen")
    assert "accuracy" in found["rows"][0]
    assert not {"passed", "exact_match"} & found["rows"][0].keys()
    assert found["settings"]["metrics_left_out"] == ["exact_match", "lax_match", "passed"]


def test_memories_are_a_bare_list_or_yaml() -> None:
    assert EvalSettings(memories="none, latentmem").names == EvalSettings(memories=("none", "latentmem")).names


def test_a_wrong_memory_is_refused_with_the_known_ones_before_anything_is_loaded(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval.cli.build", lambda args: pytest.fail("the model was loaded first"))
    with pytest.raises(ValueError, match="unknown memory 'latent'; there are none, text, latentmem_untrained"):
        evaluate(["--run", str(run), "--memories", "none,latent"])


def test_the_bank_is_frozen_unless_it_is_told_to_take_in_the_answers(run: Path) -> None:
    """Each row begins with the run's bank; the second half of the items finds the first half's answers in it."""
    flags = ["--run", str(run), "--memories", "text,latentmem", "--limit", "4"]
    evaluate([*flags, "--split", "test"])
    frozen = run / "eval" / "sample_test_autogen"
    size = results(frozen)["settings"]["bank_entries"]
    names = {f"e{place}" for place in range(size)}
    assert all(set(call.entry_ids) <= names for call in calls(frozen))
    assert results(frozen)["settings"]["bank"] == "frozen during evaluation"
    (frozen / "eval_trace.jsonl").unlink()
    evaluate([*flags, "--split", "test", "--update_every", "2"])
    assert results(frozen)["settings"]["bank"] == "takes in every 2 answers"
    assert results(frozen)["settings"]["bank_entries"] == size
    assert all(int(name[1:]) < size + 2 for call in calls(frozen) for name in call.entry_ids)
