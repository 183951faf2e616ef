"""Which episodes a gate lets into memory."""

from __future__ import annotations

import pytest

from memory.write_gate import WriteGate, admits


@pytest.mark.parametrize(
    ("gate", "score", "judgement", "admitted"),
    [
        ("none", 0.0, None, True),
        ("none", 0.0, False, True),
        ("gold", 1.0, None, True),
        ("gold", 0.99, True, False),
        ("gold", 0.0, True, False),
        ("self_judged", 0.0, True, True),
        ("self_judged", 1.0, False, False),
    ],
)
def test_gates(gate: WriteGate, score: float, judgement: bool | None, admitted: bool) -> None:
    assert admits(gate, score, judgement) is admitted


def test_what_cannot_be_decided_is_an_error() -> None:
    with pytest.raises(ValueError, match="'self_judged': the episode carries no judgement"):
        admits("self_judged", 1.0)
    with pytest.raises(ValueError, match="unknown write gate 'silver'; there are gold, self_judged, none"):
        admits("silver", 1.0)  # type: ignore[arg-type]
