"""Which finished episodes may be written into an online memory. Every result says under which gate it came about."""

from __future__ import annotations

from typing import Literal

WriteGate = Literal["gold", "self_judged", "none"]
"""``gold``: episodes whose score is 1, which takes the reference answers. ``self_judged``: episodes that the agents,
without the reference, judge to have succeeded. ``none``: no gate, every episode (LatentMem, Eq. 4)."""

SUCCESS = 1.0


def admits(gate: WriteGate, score: float, judgement: bool | None = None) -> bool:
    """Whether an episode with this headline score in [0, 1] and this judgement of its own may be written.

    Raises ``ValueError`` for an unknown gate, or for ``self_judged`` where nobody judged.
    """
    if gate == "none":
        return True
    if gate == "gold":
        return score >= SUCCESS
    if gate != "self_judged":
        raise ValueError(f"unknown write gate {gate!r}; there are gold, self_judged, none")
    if judgement is None:
        raise ValueError("write gate 'self_judged': the episode carries no judgement; use gold or none for this memory")
    return judgement
