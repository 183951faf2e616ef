from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rollout.engine import Completion, EngineError, Request, Sampling
from rollout.seeds import retry_seed
from rollout.structure import Choices, Structure
from rollout.structured_answer import structured_answer

FREE = Request("task t7, agent judge", Sampling(0.7, 8, seed=5), prompt_ids=(1, 2, 3))
HELD = replace(FREE, structure=Choices(("yes", "no")))


class Speaker:
    """Says one text after the other, whatever it is asked."""

    def __init__(self, *texts: str, **fields: object) -> None:
        self.texts, self.fields = list(texts), fields
        self.asked: list[Request] = []

    async def answer(self, request: Request) -> Completion:
        self.asked.append(request)
        made = Completion(self.texts.pop(0), (7, 2), (-0.5, -0.1), "stop", None, 0.25, None, None)
        return replace(made, **self.fields)  # type: ignore[arg-type]


def ask(speaker: Speaker, request: Request, attempts: int = 3) -> Completion:
    async def run() -> Completion:
        return await structured_answer(request, speaker.answer, attempts)

    return asyncio.run(run())


@pytest.mark.parametrize("structure", [None, Choices(("yes", "no"))])
def test_a_good_first_answer_passes_with_nothing_changed(structure: Structure | None) -> None:
    speaker = Speaker("yes")
    made = ask(speaker, replace(FREE, structure=structure))
    assert speaker.asked == [replace(FREE, structure=structure)]
    assert made == Completion("yes", (7, 2), (-0.5, -0.1), "stop", None, 0.25, None, None)


def test_without_a_structure_anything_passes() -> None:
    assert ask(Speaker(" perhaps "), FREE).text == " perhaps "


def test_white_space_and_fences_are_taken_off_the_text_only() -> None:
    made = ask(Speaker("```\nno\n```"), HELD)
    assert (made.text, made.token_ids, made.retries) == ("no", (7, 2), 0)


def test_a_wrong_answer_is_asked_for_again_under_another_seed_and_costs_add_up() -> None:
    speaker = Speaker("perhaps", "maybe", "no")
    made = ask(speaker, HELD)
    assert [asked.sampling.seed for asked in speaker.asked] == [5, retry_seed(5, 1), retry_seed(5, 2)]
    assert {asked.sampling.temperature for asked in speaker.asked} == {0.7}
    assert (made.text, made.retries, made.wall_s) == ("no", 2, 0.75)
    assert (made.prompt_tokens, made.completion_tokens) == (9, 6)  # 3 x 3 prompt positions, 3 x 2 tokens


def test_what_the_engine_counted_itself_is_what_adds_up() -> None:
    made = ask(Speaker("perhaps", "no", prompt_tokens=40, completion_tokens=4, retries=1), HELD)
    assert (made.prompt_tokens, made.completion_tokens, made.retries) == (80, 8, 3)


def test_after_a_greedy_attempt_the_next_ones_are_sampled() -> None:
    speaker = Speaker("perhaps", "maybe", "yes")
    ask(speaker, replace(HELD, sampling=Sampling(0.0, 8, seed=5)))
    assert [asked.sampling.temperature for asked in speaker.asked] == [0.0, 1.0, 1.0]


def test_attempts_are_bounded_and_the_error_says_what_was_wrong() -> None:
    speaker = Speaker("perhaps", "maybe", "yes")
    with pytest.raises(EngineError, match=r"^task t7, agent judge: .* after 2 attempt.*'stop': 'maybe' is none of"):
        ask(speaker, HELD, attempts=2)
    assert speaker.texts == ["yes"]


def test_an_engine_error_is_not_tried_again() -> None:
    async def fail(request: Request) -> Completion:
        raise EngineError(f"{request.label}: no")

    with pytest.raises(EngineError, match="agent judge: no"):
        asyncio.run(structured_answer(HELD, fail, 3))


def test_seeds_of_attempts_differ_and_the_first_is_the_calls_own() -> None:
    seeds = [retry_seed(5, attempt) for attempt in range(4)]
    assert seeds[0] == 5
    assert len({*seeds, *(retry_seed(6, attempt) for attempt in range(4))}) == 8
    assert all(0 <= seed < 2**63 for seed in seeds)
