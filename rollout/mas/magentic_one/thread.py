"""What one team has before it: the task ledger (facts and plan) and all that was said since its agents were reset."""

from __future__ import annotations

from dataclasses import dataclass, field

LEFT_OUT = "(earlier turns left out)"


@dataclass
class Thread:
    """Append-only between resets, oldest first, so that a prompt repeats the one before it and adds to its end.

    Attributes:
        characters: how much of what was said is shown, whole turns, the newest.
        taken: places in the shared bank whose values stand in it.
    """

    question: str
    characters: int
    facts: str = ""
    plan: str = ""
    said: list[str] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)

    def shown(self) -> str:
        """The newest turns that fit; the newest one always, cut at its end if need be."""
        kept: list[str] = []
        room = self.characters
        for turn in reversed(self.said):
            if kept and len(turn) > room:
                return "\n\n".join([LEFT_OUT, *reversed(kept)])
            kept.append(turn[: self.characters])
            room -= len(turn)
        return "\n\n".join(reversed(kept))

    def reset(self) -> None:
        """Everybody forgets what was said; facts and plan stay."""
        self.said.clear()
        self.taken.clear()
