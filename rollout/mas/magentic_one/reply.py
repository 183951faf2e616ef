"""A structured reply, asked for again with the reason when it is not what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory.memory import Agent
from rollout.mas.mas import Act, Message
from rollout.prompt import RolePrompts
from rollout.structure import Structure
from rollout.validate_structure import Mismatch, validate_structure


async def structured_reply(
    act: Act, agent: Agent, role: RolePrompts, messages: Sequence[Message], structure: Structure, attempts: int
) -> str | Mismatch:
    """The reply without a fence around it, or why the last of ``attempts`` replies does not hold to ``structure``.

    An engine that constrains decoding needs one attempt; whatever else is behind ``act`` may need more.

    Args:
        role: has the template ``retry``.
        messages: the last one is repeated with the reason.
    """
    asked, found = list(messages), validate_structure("", structure)
    for _ in range(attempts):
        found = validate_structure(await act(agent, asked, structure), structure)
        if isinstance(found, str):
            return found
        again = role.fill("retry", prompt=messages[-1].content, reason=found.reason)
        asked[-1] = replace(messages[-1], content=again)
    return found
