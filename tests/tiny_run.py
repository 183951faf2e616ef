"""The quickstart at a size for a test: a tiny random model, the transformers engine, two iterations a stage."""

from __future__ import annotations

from pathlib import Path

import yaml

CONFIGS = Path(__file__).parent.parent / "configs"


def tiny_quickstart(folder: Path, model: Path) -> Path:
    """Write it into ``folder`` as ``tiny.yaml``, which is returned."""
    raw = yaml.safe_load((CONFIGS / "quickstart.yaml").read_text(encoding="utf-8"))
    raw["trainer"] |= {"accelerator": "cpu"}
    settings = raw["model"]["init_args"]
    settings["backbone"] = str(model)
    settings["engine"] = {
        "class_path": "rollout.transformers_engine.TransformersEngine",
        "init_args": {"model": str(model), "max_model_len": 2048},
    }
    settings["composer"] |= {"latents": 2, "max_length": 64}
    settings["rollout"]["max_tokens"] = 4
    settings["lmpo"] |= {"group_size": 2}
    for stage in ("collect", "sft", "lmpo"):
        raw["data"][stage] = {"batch_size": 2, "steps": 2}
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(raw), encoding="utf-8")
    return path
