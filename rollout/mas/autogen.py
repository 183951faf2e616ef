"""AutoGen in the paper's A2 setting: an assistant answers, a user proxy reads the answer and has the last word."""

from __future__ import annotations

from data.task import Task
from memory.memory import Agent
from rollout.mas.mas import MAS, Act
from rollout.prompt import check_roles, load_prompts
from rollout.structure import answer_structure


class AutoGen(MAS):
    """Two calls a task. The paper's agents retrieve by themselves; here that is the memory's part, for any MAS."""

    name = "autogen"

    def __init__(self) -> None:
        check_roles(self.name, ("assistant", "user_proxy"))

    def agents(self, domain: str) -> tuple[Agent, ...]:
        """The assistant and the user proxy."""
        prompts = load_prompts(domain)
        return prompts.agent(self.name, "assistant"), prompts.agent(self.name, "user_proxy")

    async def run(self, task: Task, act: Act) -> str:
        """The user proxy's reply is the answer."""
        prompts = load_prompts(task.domain)
        assistant, user_proxy = self.agents(task.domain)
        ask = prompts.role(self.name, assistant.role).messages("answer", question=task.question)
        reply = (await act(assistant, ask)).strip()
        check = prompts.role(self.name, user_proxy.role).messages("finish", question=task.question, reply=reply)
        return (await act(user_proxy, check, answer_structure(task))).strip()
