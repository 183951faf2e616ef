"""The write gate of LatentMem's bank, in training and in its settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lightning_modules.bank_settings import BankSettings
from memory.write_gate import WriteGate
from tests.lightning_modules.parts import Setting, tiny_data, tiny_module, tiny_trainer

COLLECT_ONLY = Setting(steps={"collect": 1, "sft": 0, "lmpo": 0})


@pytest.mark.parametrize(("gate", "reward", "entries"), [("none", 0.5, 4), ("gold", 0.5, 0), ("gold", 1.0, 4)])
def test_only_what_the_gate_admits_is_written(
    tiny_model_dir: Path, tmp_path: Path, gate: WriteGate, reward: float, entries: int
) -> None:
    setting = replace(COLLECT_ONLY, constant=reward)
    module = tiny_module(tiny_model_dir, setting)
    module.bank_settings = replace(module.bank_settings, write_gate=gate)
    tiny_trainer(tmp_path).fit(module, datamodule=tiny_data(setting))
    assert len(module.bank) == entries


def test_nobody_judges_in_latentmem() -> None:
    with pytest.raises(ValueError, match=r"bank\.write_gate is 'self_judged'.*give gold or none"):
        BankSettings(write_gate="self_judged")
