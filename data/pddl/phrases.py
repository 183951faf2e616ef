"""The language of a game: facts and actions as sentences, and sentences back to actions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import yaml

from data.pddl.syntax import Atom, Problem

Game = Literal["gripper", "blockworld", "barman", "tyreworld"]
GAMES: tuple[Game, ...] = ("gripper", "blockworld", "barman", "tyreworld")

_OBJECT = re.compile(r"[\w-]+")


class UnreadableActionError(ValueError):
    """The text is no action of the game; the message is what the agent is told."""


@dataclass(frozen=True)
class Phrases:
    """The sentences of one game.

    Attributes:
        rules: what the agents are told about the game, actions included.
        observes: what an action is answered with: all that can change, or what did.
        facts: predicate to sentence; ``{0}`` is its first argument.
        actions: operator to sentence, the words that it is recognised by in brackets.
    """

    rules: str
    observes: Literal["state", "changes"]
    facts: Mapping[str, str]
    actions: Mapping[str, str]

    def fact(self, atom: Atom) -> str:
        """``("on", "b1", "b2")`` as ``b1 is on b2.``"""
        return self.facts[atom[0]].format(*atom[1:])

    def action(self, name: str, arguments: Sequence[str]) -> str:
        """An action as a sentence that :meth:`read` takes back."""
        return self.actions[name].replace("[", "").replace("]", "").format(*arguments)

    def read(self, text: str, problem: Problem) -> tuple[str, ...]:
        """The operator and its arguments that ``text`` names, in the operator's order.

        The operator is the longest one whose words occur; of several objects of one type the first is the first
        argument of that type, so that "grasp shot1 with left" and "left grasp shot1" are the same action.

        Raises:
            UnreadableActionError: no operator is named, or an argument is missing.
        """
        text = text.lower()
        spans = [
            (found.end() - found.start(), name, found) for name, words in self._words for found in words.finditer(text)
        ]
        if not spans:
            raise UnreadableActionError(f"No action is named. The actions are: {', '.join(self._verbs)}.")
        _, name, verb = max(spans, key=lambda span: (span[0], -span[2].start()))
        (action,) = (each for each in problem.domain.actions if each.name == name)
        named = [
            word for word in _OBJECT.findall(f"{text[: verb.start()]} {text[verb.end() :]}") if word in problem.objects
        ]
        arguments: list[str] = []
        for variable, type_ in action.parameters:
            fitting = [word for word in named if problem.domain.is_a(problem.objects[word], type_)]
            if not fitting:
                wanted = variable[1:] if type_ == "object" else type_
                raise UnreadableActionError(
                    f"{self.actions[name].partition('[')[2].partition(']')[0]} lacks {wanted}: "
                    f"of {len(action.parameters)} names {len(arguments)} were found"
                    + (f" ({', '.join(arguments)})." if arguments else ".")
                )
            arguments.append(fitting[0])
            named.remove(fitting[0])
        return (name, *arguments)

    @cached_property
    def _verbs(self) -> tuple[str, ...]:
        return tuple(sentence.partition("[")[2].partition("]")[0].lower() for sentence in self.actions.values())

    @cached_property
    def _words(self) -> tuple[tuple[str, re.Pattern[str]], ...]:
        """Operator to what it is recognised by; "put-away" is also "put away" and "putaway"."""
        return tuple(
            (name, re.compile("|".join(rf"(?<![\w-]){_loose(words)}(?![\w-])" for words in (verb, name))))
            for name, verb in zip(self.actions, self._verbs, strict=True)
        )


def _loose(words: str) -> str:
    return r"[-\s]?".join(map(re.escape, re.split(r"[-\s]", words)))


@cache
def load_phrases(game: Game) -> Phrases:
    """The language of ``game``, from ``games.yaml``."""
    table = yaml.safe_load((Path(__file__).parent / "games.yaml").read_text(encoding="utf-8"))
    return Phrases(**table[game])
