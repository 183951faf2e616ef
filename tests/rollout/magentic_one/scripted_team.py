"""Replies of a whole team by what it is asked for, and tools that only remember."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from data.task import Task
from rollout.tools.tool import Tool, ToolResult, object_schema
from tests.rollout.transcript import Call

TASK = Task("t0", "How many chairs were ordered?", ("6",), "test", domain="web")

Reply = Callable[[int, Call], str]


class EchoTool:
    """Answers with its argument, or with an error for ``"fail"``."""

    description = "Says what it was told."
    parameters = object_schema({"query": {"type": "string"}})

    def __init__(self, name: str = "search") -> None:
        self.name = name
        self.calls: list[Mapping[str, Any]] = []

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        self.calls.append(arguments)
        query = str(arguments["query"])
        return ToolResult("", "search: down") if query == "fail" else ToolResult(f"echo {query}")


def tools_of(**tools: Sequence[Tool]) -> Callable[[Task], Mapping[str, Sequence[Tool]]]:
    return lambda task: tools


def ledger(
    speaker: str = "coder", say: str = "go on", *, done: bool = False, loop: bool = False, progress: bool = True
) -> str:
    answers = {
        "is_request_satisfied": done,
        "is_in_loop": loop,
        "is_progress_being_made": progress,
        "instruction_or_question": say,
        "next_speaker": speaker,
    }
    return json.dumps({name: {"reason": "so it is", "answer": answer} for name, answer in answers.items()})


def asked_for(call: Call) -> str:
    """Which of its templates the orchestrator filled, or the agent's name."""
    if call.agent.name != "orchestrator":
        return call.agent.name
    text = call.text
    marks = {
        "Before anything is done": "facts",
        "Write a plan of": "plan",
        "Take stock": "ledger",
        "need in full": "select",
        "The team is stuck": "update_facts",
        "what went wrong": "update_plan",
        "The work ends here": "answer",
    }
    return next(name for mark, name in marks.items() if mark in text)


def team(ledgers: Sequence[str], others: Mapping[str, str] = {}) -> Reply:
    """``ledgers`` one after the other, the last one again and again; ``others`` by :func:`asked_for`."""
    left = list(ledgers)

    def reply(number: int, call: Call) -> str:
        kind = asked_for(call)
        if kind == "ledger":
            return left.pop(0) if len(left) > 1 else left[0]
        return others.get(kind, f"{kind} {number}")

    return reply
