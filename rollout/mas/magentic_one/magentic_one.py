"""MagenticOne: facts, plan, then a step an iteration by the progress ledger, until the task is done or steps are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from data.task import Task
from memory.memory import Agent
from memory.shared_bank import SharedBank
from rollout.clock import WallClock
from rollout.mas.magentic_one.ledger import Lengths, stalls_after
from rollout.mas.magentic_one.orchestrator import Orchestrator
from rollout.mas.magentic_one.reply import structured_reply
from rollout.mas.magentic_one.thread import Thread
from rollout.mas.magentic_one.tool_call import read_turn, tool_list, tool_output, turn_schema
from rollout.mas.mas import MAS, Act
from rollout.prompt import check_roles, load_prompts
from rollout.teams import Seat
from rollout.tools.tool import Tool
from rollout.validate_structure import Mismatch

PROMPTS = "magentic_one"
"""Its prompt file, whatever the domain of a task."""

TEAM = ("web", "files", "coder", "executor")

ToolsOf = Callable[[Task], Mapping[str, Sequence[Tool]]]
"""The tools of each agent for a task; an agent that is not named has none."""


@dataclass(frozen=True)
class MagenticOneSettings:
    """How a team works.

    Attributes:
        max_steps: agent steps (paper, LTS §4.1: 30).
        min_steps: before which a team is not believed that its task is done (ours; published: 0). A small
            model may call it done before anybody did anything.
        max_stalls: stalls that lead to a new plan (the published value: 3).
        attempts: at each structured reply (ours).
        most_selected: values taken from the shared bank before one step (ours).
        context_characters: how much of what was said a prompt repeats, the newest turns (ours).
        lengths: of what structured replies hold (ours).
    """

    max_steps: int = 30
    min_steps: int = 0
    max_stalls: int = 3
    attempts: int = 3
    most_selected: int = 3
    context_characters: int = 40_000
    lengths: Lengths = field(default_factory=Lengths)

    def __post_init__(self) -> None:
        if self.max_stalls < 2:
            raise ValueError(f"max_stalls is {self.max_stalls}; give at least 2, or a team replans for ever")
        if self.min_steps > self.max_steps:
            raise ValueError(f"min_steps is {self.min_steps}, over max_steps of {self.max_steps}")
        if min(self.max_steps, self.attempts, self.most_selected) < 1:
            raise ValueError("max_steps, attempts and most_selected must be at least 1")


class MagenticOne(MAS):
    """One orchestrator and four agents. By itself a MAS; over a :class:`rollout.teams.Seat` one of K teams.

    Args:
        tools: makes each agent's tools for a task.
        settings: how the team works.
    """

    name = "magentic_one"

    def __init__(self, tools: ToolsOf, settings: MagenticOneSettings = MagenticOneSettings()) -> None:
        check_roles(self.name, ("orchestrator", *TEAM))
        self.tools = tools
        self.settings = settings

    def agents(self, domain: str) -> tuple[Agent, ...]:
        """The orchestrator and its team, the same in every domain."""
        prompts = load_prompts(PROMPTS)
        return tuple(prompts.agent(self.name, role) for role in ("orchestrator", *TEAM))

    async def run(self, task: Task, act: Act) -> str:
        """K = 1: a team that shares with nobody."""
        seat = Seat(0, self.settings.max_steps, task.question, SharedBank(), [], None, WallClock())
        return await self.work(task, act, seat)

    async def work(self, task: Task, act: Act, seat: Seat) -> str:
        """The candidate answer y^k. Before each orchestrator step the bank is read, after each agent step it is told.

        Raises:
            ValueError: no valid ledger or selection within the attempts.
        """
        orchestrator = self._orchestrator(task, act)
        tools = self.tools(task)
        stalls = 0
        await orchestrator.begin()
        while not seat.exhausted:
            await orchestrator.read_bank(seat)
            ledger = await orchestrator.ledger()
            if ledger.is_request_satisfied and len(seat.steps) >= self.settings.min_steps:
                break
            stalls = stalls_after(stalls, ledger)
            if stalls >= self.settings.max_stalls:
                await orchestrator.replan()
                stalls = 0
                continue
            name, instruction = ledger.next_speaker, ledger.instruction_or_question
            output = await self._turn(act, name, orchestrator.context(), instruction, tools.get(name, ()))
            turn = orchestrator.role.fill("turn", agent=name, instruction=instruction, output=output)
            orchestrator.thread.said.append(turn)
            await seat.admit(instruction, output, context=orchestrator.context())
        return await orchestrator.answer()

    def _orchestrator(self, task: Task, act: Act) -> Orchestrator:
        prompts, settings = load_prompts(PROMPTS), self.settings
        role = prompts.role(self.name, "orchestrator")
        file = str(task.metadata.get("file_name") or "")
        question = role.fill("with_file", question=task.question, file=file) if file else task.question
        team = "\n".join(f"{name}: {prompts.role(self.name, name).fill('description')}" for name in TEAM)
        return Orchestrator(
            task=task,
            act=act,
            agent=prompts.agent(self.name, "orchestrator"),
            role=role,
            thread=Thread(question, settings.context_characters),
            speakers=TEAM,
            team=team,
            attempts=settings.attempts,
            most_selected=settings.most_selected,
            lengths=settings.lengths,
        )

    async def _turn(self, act: Act, name: str, context: str, instruction: str, tools: Sequence[Tool]) -> str:
        """One agent step: o_t. What an agent does wrong with a tool is its output, as a failed call is."""
        prompts, settings = load_prompts(PROMPTS), self.settings
        agent, role = prompts.agent(self.name, name), prompts.role(self.name, name)
        if not tools:
            return (await act(agent, role.messages("speak", context=context, instruction=instruction))).strip()
        messages = role.messages("use", context=context, instruction=instruction, tools=tool_list(tools))
        schema = turn_schema(tools, settings.lengths.text, settings.lengths.argument)
        retry = prompts.role(self.name, "orchestrator")
        reply = await structured_reply(act, agent, retry, messages, schema, settings.attempts)
        if isinstance(reply, Mismatch):
            return f"{name} gave no valid reply: {reply.reason}"
        turn = read_turn(reply)
        if isinstance(turn, str):
            return turn
        (tool,) = (tool for tool in tools if tool.name == turn.tool)
        return tool_output(turn, await tool.call(turn.arguments))
