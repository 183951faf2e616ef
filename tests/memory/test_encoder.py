from __future__ import annotations

import numpy as np
import pytest

from memory.encoder import Encoder
from memory.experience_bank import ExperienceBank
from tests.memory.parts import a_trajectory


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    return Encoder()


@pytest.mark.slow
def test_minilm_gives_unit_vectors_in_order_whatever_the_batch(minilm: Encoder) -> None:
    texts = ["What is the capital of Peru?", "", "A much longer text about the chemistry of gold. " * 80]
    vectors = minilm.encode(texts)
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert minilm.encode(texts).tobytes() == vectors.tobytes()
    np.testing.assert_allclose(np.concatenate([minilm.encode([text]) for text in texts]), vectors, atol=1e-5)
    assert minilm.encode([]).shape == (0, 384)


@pytest.mark.slow
def test_minilm_finds_the_related_question(minilm: Encoder) -> None:
    bank = ExperienceBank(minilm)
    bank.append(
        [
            a_trajectory("What is the chemical symbol of gold?", "Au"),
            a_trajectory("What is the capital of Kenya?", "Nairobi"),
            a_trajectory("Who wrote Emma?", "Jane Austen"),
        ]
    )
    found = bank.search(["Which city is the capital of Peru?", "Which author wrote Hamlet?"], k=1)
    assert [entries[0].entry_id for entries in found] == ["e1", "e2"]


def test_nothing_is_loaded_before_the_first_use() -> None:
    assert Encoder("a model that does not exist").name == "a model that does not exist"
