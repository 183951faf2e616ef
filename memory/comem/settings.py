"""Every constant of CoMem, published or ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memory.write_gate import WriteGate

BaselineKind = Literal["mean", "ema", "window"]


@dataclass(frozen=True)
class CoMemSettings:
    """Defaults are the paper's (section 4.1) where it gives one.

    Attributes:
        reward: the metric of a score that is R (ours: the benchmark decides).
        k: retrieval depth of both streams (paper: 3).
        candidates: collective entries that the clustering filter sees, as a multiple of ``k`` (ours).
        cluster_cut: cosine distance below which entries say the same (ours).
        k_max: K_max, misses running that a private entry survives (paper: 5 for PDDL, 6 for ALFWorld).
        n_min: N_min, uses before promotion (paper: 3).
        baseline: R̄, the ``mean`` of all past episodes (ours), an exponential average, or the mean of a ``window``.
        baseline_rate: of the exponential average (ours).
        baseline_window: episodes of the window (ours).
        w: weight of the reward in U (paper: 0.5).
        l_max: L_max, the highest judgement (ours).
        alpha: α of the score's moving average (paper: 0.5).
        s_max: S_max (paper: 100).
        s_0: S_0 (ours).
        forgetting_threshold: of S (paper: 30).
        forgetting_updates: updates running below the threshold that end a collective entry (ours).
        forgetting_quantile: raises the threshold to this quantile of the pool's scores, where given (ours).
        max_insights: an agent's insights of one episode (ours).
        write_gate: which episodes insights are written from (paper: no gate, failures teach too).
        distil_into: ``private`` (paper), or ``collective`` for the paper's ablation without private stores.
    """

    reward: str = "success"
    k: int = 3
    candidates: int = 4
    cluster_cut: float = 0.3
    k_max: int = 5
    n_min: int = 3
    baseline: BaselineKind = "mean"
    baseline_rate: float = 0.1
    baseline_window: int = 50
    w: float = 0.5
    l_max: int = 10
    alpha: float = 0.5
    s_max: float = 100.0
    s_0: float = 50.0
    forgetting_threshold: float = 30.0
    forgetting_updates: int = 2
    forgetting_quantile: float | None = None
    max_insights: int = 3
    write_gate: WriteGate = "none"
    distil_into: Literal["private", "collective"] = "private"

    def __post_init__(self) -> None:
        least_one = ("k", "candidates", "n_min", "baseline_window", "l_max", "forgetting_updates", "max_insights")
        for name in least_one:
            if getattr(self, name) < 1:
                raise ValueError(f"CoMem settings.{name} is {getattr(self, name)}, it must be at least 1")
        for name in ("w", "alpha", "baseline_rate", "forgetting_quantile"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ValueError(f"CoMem settings.{name} is {value}, it must be between 0 and 1")
        if self.write_gate == "self_judged":
            raise ValueError(
                "CoMem settings.write_gate is 'self_judged', but agents judge entries, not episodes; give gold or none"
            )
        if self.k_max < 0 or not 0 <= self.s_0 <= self.s_max:
            raise ValueError(f"CoMem settings: k_max {self.k_max} must not be negative, s_0 {self.s_0} not above s_max")
