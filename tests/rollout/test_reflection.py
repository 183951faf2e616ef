"""What an agent is shown of its own episode, and how its judgement is read."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from data.trajectory import Trajectory
from memory.memory import Agent
from rollout.ask import Asker
from rollout.reflection import LLMDistiller, LLMJudge, agent_trace, insights_schema, outcome, score_schema
from rollout.structure import grammar_fault
from rollout.validate_structure import Mismatch, validate_structure
from tests.memory.parts import a_trajectory
from tests.rollout.question_engine import QuestionEngine
from tests.tiny_model import tiny_tokenizer

ANN = Agent("ann", "cook", "You cook.")


def an_episode() -> Trajectory:
    plain = a_trajectory("Make soup")
    step = replace(plain.steps[0], agent="ann", prompt="You cook.\n\nThe pot is empty.", output="fill pot ")
    other = replace(step, agent="bob", prompt="You serve.\n\nSECRET", output="wait")
    last = replace(step, prompt="You cook.\n\nThe pot is full.", output="boil")
    return replace(plain, steps=(step, other, last), score={"success": 0.0, "sub_goals": 0.5})


def test_a_trace_is_the_agents_own_calls_and_nobody_elses() -> None:
    assert agent_trace(an_episode(), ANN).splitlines() == [
        "you read: The pot is empty.",
        "you said: fill pot",
        "you read: The pot is full.",
        "you said: boil",
    ]
    assert outcome(an_episode()) == "success 0.00, sub goals 0.50"


def test_the_distiller_asks_in_the_agents_role_about_its_own_trace() -> None:
    reply = '{"insights": ["Fill first.", "Boil long.", "Salt.", "Stir."]}'
    engine = QuestionEngine(tiny_tokenizer(), lambda prompt, request: reply)
    found = asyncio.run(LLMDistiller(trace_chars=60).distil(Asker(engine, engine.tokenizer, 0), ANN, an_episode(), "d"))
    assert found == ("Fill first.", "Boil long.", "Salt.")
    prompt = engine.asked[0][0]
    assert "system\nYou cook." in prompt
    assert "The task was: Make soup" in prompt
    assert "boil" in prompt
    assert "The pot is empty" not in prompt  # 60 characters are kept, the last ones
    assert "SECRET" not in prompt
    assert "success 0.00, sub goals 0.50" in prompt


@pytest.mark.parametrize(
    ("reply", "score"),
    [('{"score": 7}', 7.0), ('{"score": 0}', 0.0), ('{"score": 11}', None), ('{"score": true}', None), ("7", None)],
)
def test_a_judgement_is_a_number_from_zero_to_l_max(reply: str, score: float | None) -> None:
    engine = QuestionEngine(tiny_tokenizer(), lambda prompt, request: reply)
    judge = LLMJudge(l_max=10)
    assert asyncio.run(judge.judge(Asker(engine, engine.tokenizer, 0), ANN, "Fill first.", an_episode(), "j")) == score
    assert "given this advice: Fill first." in engine.asked[0][0]
    assert engine.asked[0][1].structure == score_schema(10)


def test_insights_fit_into_the_reply() -> None:
    """Three texts of at most (256 - 16) / 3 characters, were each character a token."""
    held = insights_schema(3, 256)
    assert grammar_fault(held) is None
    good = json.dumps({"insights": ["a" * 80] * 3})
    assert validate_structure(good, held) == good
    for bad in (["a" * 81], [], [""], ["a"] * 4):
        assert isinstance(validate_structure(json.dumps({"insights": bad}), held), Mismatch)
