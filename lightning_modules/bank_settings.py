"""Settings of LatentMem's experience bank during training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from data.bounds import check_at_least
from memory.experience_bank import Key
from memory.write_gate import WriteGate


@dataclass(frozen=True)
class BankSettings:
    """The experience bank B.

    Attributes:
        k: K, trajectories a query (paper: 1).
        encoder: v (paper: all-MiniLM-L6-v2).
        key: what is embedded of a stored trajectory (paper: all of it).
        append: which of a task's new trajectories enter during LMPO (Eq. 4): ``all`` of the group, ``one``
            (ours: the members of a group are near copies), or ``none``.
        write_gate: which trajectories may be written at all, in collection and in LMPO (paper: no gate).
        collect_temperature: of the collection pass (ours).
    """

    k: int = 1
    encoder: str = "all-minilm-l6-v2"
    key: Key = "trajectory"
    append: Literal["all", "one", "none"] = "one"
    write_gate: WriteGate = "none"
    collect_temperature: float = 0.0

    def __post_init__(self) -> None:
        check_at_least(1, "bank", k=self.k)
        if self.write_gate == "self_judged":
            raise ValueError(
                "bank.write_gate is 'self_judged', but LatentMem's agents judge nothing; give gold or none"
            )
