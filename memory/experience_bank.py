"""LatentMem's experience bank B: raw trajectories, found by similarity (equations 3 and 4), nothing distilled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import Literal, cast

import numpy as np
import torch

from data.scoring.short_answer import normalise_question
from data.trajectory import Trajectory, trajectory_from_dict, trajectory_text, trajectory_to_dict
from memory.encoder import TextEncoder, Vectors
from memory.index import CosineIndex

Key = Literal["trajectory", "question"]


@dataclass(frozen=True)
class Retrieved:
    """One τ_i of T_q, with sim(v(q), v(τ_i)) and the stable name of its entry."""

    trajectory: Trajectory
    similarity: float
    entry_id: str


class ExperienceBank:
    """Append-only; entry ``i`` is called ``"e<i>"`` for good.

    A question never gets an entry of the very same question (compared by
    :func:`data.scoring.short_answer.normalise_question`): its answer would be in there. Nor does it get two entries of
    one question (ours): a question that was run G times is still one experience.

    What is kept of a trajectory is what retrieval, the composer and the text baseline read: the task, and who said what
    to which prompt. Token ids and log-probabilities are dropped on the way in, not only from checkpoints, so that a
    resumed run and an uninterrupted one hold the same bank.

    Args:
        encoder: v of equation 3.
        key: what v reads of a stored trajectory: all of its text (paper) or its question alone (ours).
    """

    def __init__(self, encoder: TextEncoder, key: Key = "trajectory") -> None:
        if key not in ("trajectory", "question"):
            raise ValueError(f"ExperienceBank: key is {key!r}; give 'trajectory' or 'question'")
        self.encoder = encoder
        self.key = key
        self._fill((), None)

    def __len__(self) -> int:
        return len(self._entries)

    def questions(self) -> tuple[str, ...]:
        """The question of every entry, in order of entry."""
        return tuple(entry.task.question for entry in self._entries)

    def latest(self, question: str) -> Trajectory | None:
        """The newest entry of the very same question, if there is one."""
        wanted = normalise_question(question)
        newest_first = zip(reversed(self._entries), reversed(self._same), strict=True)
        return next((entry for entry, same in newest_first if same == wanted), None)

    def append(self, trajectories: Sequence[Trajectory]) -> None:
        """B ← B ∪ {τ_new} (equation 4), one encoder call for all of them."""
        if not trajectories:
            return
        vectors = self.encoder.encode([self._key_text(trajectory) for trajectory in trajectories])
        self._add([_without_tokens(trajectory) for trajectory in trajectories], vectors)

    def search(self, questions: Sequence[str], k: int) -> list[list[Retrieved]]:
        """T_q = top-K of sim(v(q), v(τ_i)) (equation 3) for each question: one encoder call, one index search.

        Args:
            questions: the queries.
            k: most entries a query (paper: 1).

        Returns:
            For each query at most ``k`` entries, most similar first, older first among equals; fewer only when the bank
            holds fewer other questions.
        """
        if k < 1:
            raise ValueError(f"ExperienceBank.search: k is {k}, it must be at least 1")
        if self._index is None or not questions:
            return [[] for _ in questions]
        scores, ids = self._index.search(self.encoder.encode(questions), self._width(k))
        neighbours = ([*zip(*row, strict=True)] for row in zip(scores.tolist(), ids.tolist(), strict=True))
        return [self._pick(question, found, k) for question, found in zip(questions, neighbours, strict=True)]

    def state_dict(self) -> dict[str, object]:
        """Plain values and one tensor, so that ``torch.load(weights_only=True)`` takes it."""
        vectors = np.zeros((0, 0), dtype=np.float32) if self._index is None else self._index.vectors()
        return {
            "encoder": self.encoder.name,
            "key": self.key,
            "trajectories": [trajectory_to_dict(entry) for entry in self._entries],
            "embeddings": torch.from_numpy(vectors.copy()),
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Replace everything by ``state``, bit for bit; nothing is encoded again.

        Raises:
            ValueError: the state was made with another encoder or key, or its two parts differ in length.
        """
        for name, here in (("encoder", self.encoder.name), ("key", self.key)):
            if state[name] != here:
                raise ValueError(
                    f"ExperienceBank: the checkpoint's {name} is {state[name]!r}, this run's is {here!r}; "
                    "set it as it was, or collect the bank anew"
                )
        vectors = cast(torch.Tensor, state["embeddings"]).cpu().numpy()
        entries = [trajectory_from_dict(raw) for raw in cast(Sequence[Mapping[str, object]], state["trajectories"])]
        if len(entries) != len(vectors):
            raise ValueError(
                f"ExperienceBank: the checkpoint has {len(entries)} trajectories but {len(vectors)} embeddings; "
                "it is damaged, take an earlier one"
            )
        self._fill(entries, vectors)

    def _fill(self, entries: Sequence[Trajectory], vectors: Vectors | None) -> None:
        self._entries: list[Trajectory] = []
        self._same: list[str] = []
        self._counts: Counter[str] = Counter()
        self._index: CosineIndex | None = None
        if entries and vectors is not None:
            self._add(entries, vectors)

    def _add(self, entries: Sequence[Trajectory], vectors: Vectors) -> None:
        if self._index is None:
            self._index = CosineIndex(vectors.shape[1])
        self._index.add(vectors)
        self._entries += entries
        normalised = [normalise_question(entry.task.question) for entry in entries]
        self._same += normalised
        self._counts.update(normalised)

    def _key_text(self, trajectory: Trajectory) -> str:
        return trajectory_text(trajectory) if self.key == "trajectory" else trajectory.task.question

    def _width(self, k: int) -> int:
        """How many neighbours are always enough, so that one search does.

        The k most repeated questions hold ``sum`` entries; any ``sum + 1`` entries therefore hold at least k + 1
        questions, and at most one of these is the query's own.
        """
        return sum(nlargest(k, self._counts.values())) + 1

    def _pick(self, question: str, neighbours: Sequence[tuple[float, int]], k: int) -> list[Retrieved]:
        """The first ``k`` (similarity, entry) that differ in question from the query and from one another."""
        seen = {normalise_question(question)}
        picked: list[Retrieved] = []
        for score, entry in sorted(neighbours, key=lambda pair: (-pair[0], pair[1])):
            if len(picked) < k and self._same[entry] not in seen:
                seen.add(self._same[entry])
                picked.append(Retrieved(self._entries[entry], score, f"e{entry}"))
        return picked


def _without_tokens(trajectory: Trajectory) -> Trajectory:
    steps = (replace(step, prefix_ids=(), suffix_ids=(), output_ids=(), logprobs=()) for step in trajectory.steps)
    return replace(trajectory, steps=tuple(steps))
