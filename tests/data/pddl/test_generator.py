from __future__ import annotations

import pytest

from data.pddl.generator import generate


def test_too_few_steps_end_with_an_error_and_not_with_an_endless_search() -> None:
    with pytest.raises(ValueError, match=r"none of 1000 drafts of gripper .* in 4 to 2 steps; .*max_steps"):
        next(generate("gripper", "train", seed=0, longest=2))
