from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from data.scoring.short_answer import normalise_question
from data.trajectory import trajectory_text
from memory.experience_bank import ExperienceBank
from tests.memory.parts import BagOfWords, a_trajectory

WORDS = ("capital", "river", "gold", "author", "year", "Kenya", "Peru", "mountain")
QUESTION = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)


def filled(questions: Sequence[str], **options: str) -> ExperienceBank:
    bank = ExperienceBank(BagOfWords(), **options)  # type: ignore[arg-type]
    bank.append([a_trajectory(question, f"answer {place}") for place, question in enumerate(questions)])
    return bank


@given(stored=st.lists(QUESTION, max_size=25), queries=st.lists(QUESTION, max_size=4), k=st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_retrieval_rules(stored: list[str], queries: list[str], k: int) -> None:
    found = filled(stored).search(queries, k)
    assert len(found) == len(queries)
    for query, entries in zip(queries, found, strict=True):
        questions = [entry.trajectory.task.question for entry in entries]
        similarities = [entry.similarity for entry in entries]
        assert query not in questions
        assert len(questions) == len(set(questions)) == min(k, len(set(stored) - {query}))
        assert similarities == sorted(similarities, reverse=True)
        assert all(
            stored[int(entry.entry_id[1:])] == question for entry, question in zip(entries, questions, strict=True)
        )


@given(stored=st.lists(QUESTION, min_size=1, max_size=20), query=QUESTION, k=st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_retrieval_equals_brute_force_over_cosines(stored: list[str], query: str, k: int) -> None:
    bank = filled(stored)
    texts = [trajectory_text(a_trajectory(question, f"answer {place}")) for place, question in enumerate(stored)]
    cosines = BagOfWords().encode(texts) @ BagOfWords().encode([query])[0]
    best: dict[str, float] = {}
    for question, cosine in zip(stored, cosines.tolist(), strict=True):
        if question != query:
            best[question] = max(cosine, best.get(question, -1.0))
    [entries] = bank.search([query], k)
    np.testing.assert_allclose([e.similarity for e in entries], sorted(best.values(), reverse=True)[:k], atol=1e-5)


def test_the_latest_entry_of_a_question_is_found_whatever_its_case() -> None:
    bank = filled(["What is the capital of Peru?", "Who wrote Emma?", "what is the capital of PERU"])
    latest = bank.latest("What is the capital of Peru?")
    assert latest is not None
    assert latest.answer == "answer 2"
    assert bank.latest("Who wrote Faust?") is None


def test_the_same_question_in_other_clothes_is_the_same_question() -> None:
    bank = filled(["What is the capital of Peru?", "What is the capital of Kenya?"])
    [entries] = bank.search(["what is the CAPITAL of  Peru"], k=2)
    assert [entry.entry_id for entry in entries] == ["e1"]


def test_k_others_are_found_behind_any_number_of_repeats() -> None:
    bank = filled(["gold"] * 40 + ["gold river"] * 30 + ["gold year Peru"])
    [entries] = bank.search(["gold"], k=2)
    assert [entry.trajectory.task.question for entry in entries] == ["gold river", "gold year Peru"]
    assert entries[1].entry_id == "e70"


def test_among_equals_the_older_entry_wins() -> None:
    bank = filled(["river", "river", "year"], key="question")
    [entries] = bank.search(["gold river"], k=2)
    assert [entry.entry_id for entry in entries] == ["e0", "e2"]


def test_a_search_is_one_encoder_call_and_so_is_an_append() -> None:
    encoder = BagOfWords()
    bank = ExperienceBank(encoder)
    bank.append([a_trajectory("gold"), a_trajectory("river")])
    bank.search(["year", "Peru", "Kenya"], k=1)
    assert [len(call) for call in encoder.calls] == [2, 3]


def test_what_is_embedded_is_the_trajectory_or_the_question() -> None:
    for key, text in (("trajectory", "Question: gold\nassistant: Au"), ("question", "gold")):
        encoder = BagOfWords()
        ExperienceBank(encoder, key=key).append([a_trajectory("gold", "Au")])  # type: ignore[arg-type]
        assert encoder.calls == [(text,)]


def test_an_empty_bank_answers_with_nothing_and_encodes_nothing() -> None:
    encoder = BagOfWords()
    bank = ExperienceBank(encoder)
    bank.append([])
    assert bank.search(["gold", "river"], k=1) == [[], []]
    assert (len(bank), bank.questions(), encoder.calls) == (0, (), [])


def test_only_what_is_read_is_kept() -> None:
    bank = filled(["gold"])
    [[entry]] = bank.search(["river"], k=1)
    [step] = entry.trajectory.steps
    assert (step.prefix_ids, step.suffix_ids, step.output_ids, step.logprobs) == ((), (), (), ())
    assert trajectory_text(entry.trajectory) == "Question: gold\nassistant: answer 0"
    assert step.prompt == "You answer.\n\ngold"


def test_entries_keep_their_names_while_the_bank_grows() -> None:
    bank = filled(["gold", "river"])
    [before] = bank.search(["river Peru"], k=1)
    bank.append([a_trajectory("mountain")])
    assert bank.search(["river Peru"], k=1) == [before]
    assert bank.questions() == ("gold", "river", "mountain")


@given(stored=st.lists(QUESTION, max_size=8), later=st.lists(QUESTION, max_size=3))
@settings(max_examples=30, deadline=None)
def test_a_checkpoint_restores_it_bit_for_bit_without_encoding(stored: list[str], later: list[str]) -> None:
    bank = filled(stored)
    file = io.BytesIO()
    torch.save(bank.state_dict(), file)
    file.seek(0)
    restored = filled(["something else", "entirely"])
    restored.encoder.calls.clear()  # type: ignore[attr-defined]
    restored.load_state_dict(torch.load(file, weights_only=True))
    assert restored.encoder.calls == []  # type: ignore[attr-defined]
    for copy in (bank, restored):
        copy.append([a_trajectory(question) for question in later])
    one, two = bank.state_dict(), restored.state_dict()
    assert torch.equal(one.pop("embeddings"), two.pop("embeddings"))  # type: ignore[arg-type]
    assert one == two
    assert bank.search(["gold year"], k=3) == restored.search(["gold year"], k=3)


def test_a_checkpoint_of_another_embedding_space_is_refused() -> None:
    state = filled(["gold"]).state_dict()
    with pytest.raises(ValueError, match="encoder is 'bag-of-words', this run's is 'other'"):
        ExperienceBank(BagOfWords("other")).load_state_dict(state)
    with pytest.raises(ValueError, match="key is 'trajectory', this run's is 'question'"):
        ExperienceBank(BagOfWords(), key="question").load_state_dict(state)


def test_a_checkpoint_whose_parts_differ_in_length_is_refused() -> None:
    state = filled(["gold", "river"]).state_dict()
    state["embeddings"] = state["embeddings"][:1]  # type: ignore[index]
    with pytest.raises(ValueError, match="2 trajectories but 1 embeddings"):
        ExperienceBank(BagOfWords()).load_state_dict(state)


@pytest.mark.parametrize("k", [0, -1])
def test_k_must_be_positive(k: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        filled(["gold"]).search(["river"], k)


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(ValueError, match="'answer'"):
        ExperienceBank(BagOfWords(), key="answer")  # type: ignore[arg-type]


def test_questions_are_compared_by_their_words() -> None:
    assert normalise_question("Who wrote “Emma”?") == normalise_question("who wrote Emma")
