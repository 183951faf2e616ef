from __future__ import annotations

import pytest

from memory.experience_bank import ExperienceBank
from memory.memory import Agent, Memory, Recall
from memory.text import TextMemory
from tests.memory.parts import BagOfWords, a_task, a_trajectory

AGENT = Agent("assistant", "assistant", "You answer.")


def bank_of(*questions: str) -> ExperienceBank:
    bank = ExperienceBank(BagOfWords(), key="question")
    bank.append([a_trajectory(question, f"answer to {question}") for question in questions])
    return bank


def recall(memory: Memory, question: str) -> Recall:
    task = a_task(question)
    memory.prepare([task], [AGENT])
    return memory.recall(task, AGENT, "context")


def test_retrieved_trajectories_in_order_of_similarity() -> None:
    found = recall(TextMemory(bank_of("gold", "gold river", "year"), k=2), "gold river Peru")
    assert found == Recall(
        text="Question: gold river\nassistant: answer to gold river\n\nQuestion: gold\nassistant: answer to gold",
        entry_ids=("e1", "e0"),
    )


def test_text_ends_at_the_limit_and_lists_only_what_is_in_it() -> None:
    bank = bank_of("gold", "gold river")
    whole = recall(TextMemory(bank, k=2), "gold river Peru").text
    for limit in range(1, len(whole) + 1):
        found = recall(TextMemory(bank, k=2, max_chars=limit), "gold river Peru")
        assert len(found.text) <= limit
        assert whole.startswith(found.text)
        assert len(found.entry_ids) == found.text.count("\n\n") + 1


def test_one_search_serves_all_tasks() -> None:
    bank = bank_of("gold", "river")
    memory = TextMemory(bank)
    tasks = [a_task(f"gold {place}", f"t{place}") for place in range(5)]
    bank.encoder.calls.clear()  # type: ignore[attr-defined]
    memory.prepare(tasks, [AGENT])
    assert all(memory.recall(task, AGENT, "").entry_ids == ("e0",) for task in tasks)
    assert len(bank.encoder.calls) == 1  # type: ignore[attr-defined]


def test_an_empty_bank_recalls_nothing() -> None:
    assert recall(TextMemory(bank_of()), "gold") == Recall()


def test_a_task_that_was_not_prepared_is_an_error() -> None:
    with pytest.raises(LookupError, match="'t9' was not prepared"):
        TextMemory(bank_of("gold")).recall(a_task("river", "t9"), AGENT, "")


@pytest.mark.parametrize(("update", "length"), [(False, 1), (True, 2)])
def test_it_learns_only_when_told_to(update: bool, length: int) -> None:
    bank = bank_of("gold")
    TextMemory(bank, update=update).end_episode(a_trajectory("river"))
    assert len(bank) == length


def test_the_limit_must_be_positive() -> None:
    with pytest.raises(ValueError, match="max_chars is 0"):
        TextMemory(bank_of(), max_chars=0)
