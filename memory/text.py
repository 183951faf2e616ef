"""The plainest memory: the retrieved trajectories, as text, in every agent's prompt. LatentMem's ``text`` baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from data.task import Task
from data.trajectory import Trajectory, trajectory_text
from memory.experience_bank import ExperienceBank, Retrieved
from memory.memory import Agent, Recall


class TextMemory:
    """The same bank and the same search as LatentMem, without the composer.

    Args:
        bank: where trajectories come from.
        k: how many a question (paper: 1).
        max_chars: the text's limit; what does not fit is cut off at the end.
        update: append finished episodes to the bank.
    """

    def __init__(self, bank: ExperienceBank, k: int = 1, max_chars: int = 2000, update: bool = False) -> None:
        if max_chars < 1:
            raise ValueError(f"TextMemory: max_chars is {max_chars}, it must be at least 1")
        self.bank = bank
        self.k = k
        self.max_chars = max_chars
        self.update = update
        self._recalls: dict[str, Recall] = {}

    def prepare(self, tasks: Sequence[Task], agents: Sequence[Agent]) -> None:
        """One search for all tasks; it replaces what was prepared before. Every agent gets the same text."""
        found = self.bank.search([task.question for task in tasks], self.k)
        self._recalls = {task.id: self._recall(entries) for task, entries in zip(tasks, found, strict=True)}

    def recall(self, task: Task, agent: Agent, context: str) -> Recall:
        """What was prepared for ``task``. Raises ``LookupError`` when it was not."""
        if task.id not in self._recalls:
            raise LookupError(f"TextMemory: task {task.id!r} was not prepared; call prepare with it first")
        return self._recalls[task.id]

    def end_episode(self, trajectory: Trajectory) -> None:
        """Equation 4 when ``update`` is set, else nothing."""
        if self.update:
            self.bank.append([trajectory])

    def state_dict(self) -> dict[str, object]:
        """The bank's."""
        return self.bank.state_dict()

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """The bank's."""
        self.bank.load_state_dict(state)

    def _recall(self, entries: Sequence[Retrieved]) -> Recall:
        texts: list[str] = []
        room = self.max_chars
        for entry in entries:
            text = trajectory_text(entry.trajectory)[:room].rstrip()
            if text:
                texts.append(text)
                room = max(0, room - len(text) - len(_BETWEEN))
        return Recall(text=_BETWEEN.join(texts), entry_ids=tuple(entry.entry_id for entry in entries[: len(texts)]))


_BETWEEN = "\n\n"
