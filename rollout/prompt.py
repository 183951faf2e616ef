"""From role prompts to token ids: the prompt files, and one rendering for every condition.

A prompt is tokenised in two halves, cut where latents go, whether or not there are any: so a memory never changes how
the words around it are tokenised, and runs with and without one are comparable token for token.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Literal

import yaml

from memory.memory import Agent
from rollout.mas.mas import Message

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Injection = Literal["before_generation_prompt", "after_generation_prompt"]

PROMPTS = Path(__file__).parent / "prompts"
MEMORY_SLOT = "{memory}\n\n{prompt}"
_MARKER = "CUT7HERE3FOR9LATENTS"


@dataclass(frozen=True)
class RolePrompts:
    """What one role is told. ``where`` is its file and key, for error messages."""

    where: str
    profile: str
    templates: Mapping[str, str]

    def fill(self, template: str, **values: str) -> str:
        """The named template with ``values`` in place. Raises ``ValueError`` for an unknown template or placeholder."""
        if template not in self.templates:
            raise ValueError(f"{self.where}.{template} is missing; add a template with {_braces(values)}")
        text = self.templates[template]
        _check_placeholders(f"{self.where}.{template}", text, values)
        return text.format(**values)

    def messages(self, template: str, **values: str) -> tuple[Message, Message]:
        """The profile as system message and the filled template as user message."""
        return Message("system", self.profile), Message("user", self.fill(template, **values))


@dataclass(frozen=True)
class DomainPrompts:
    """One prompt file: the memory slot, and the roles of every MAS by ``"<mas>.<role>"``."""

    file: str
    memory_slot: str
    roles: Mapping[str, RolePrompts]

    def role(self, mas: str, role: str) -> RolePrompts:
        """Raises ``ValueError`` that names file and key when the role is not there."""
        key = f"{mas}.{role}"
        if key not in self.roles:
            raise ValueError(f"{self.file}: {key} is missing; the file has {', '.join(sorted(self.roles))}")
        return self.roles[key]

    def agent(self, mas: str, role: str, name: str | None = None) -> Agent:
        """An agent of that role, named after it unless ``name`` is given."""
        return Agent(name=name or role, role=role, profile=self.role(mas, role).profile)


@lru_cache
def load_prompts(domain: str, folder: Path = PROMPTS) -> DomainPrompts:
    """Read and check ``<folder>/<domain>.yaml``, once a process.

    Raises:
        ValueError: no such file, a section of the wrong shape, an empty text; the message names file and key.
    """
    path = folder / f"{domain}.yaml"
    if not path.is_file():
        known = ", ".join(domains(folder))
        raise ValueError(f"no prompts for domain {domain!r}: {path} does not exist; there are prompts for: {known}")
    with path.open(encoding="utf-8") as file:
        raw = _section(str(path), yaml.safe_load(file))
    slot = _text(f"{path}: memory_slot", raw.pop("memory_slot", None))
    _check_placeholders(f"{path}: memory_slot", slot, ("memory", "prompt"), all_needed=True)
    roles = {
        f"{mas}.{role}": _role(f"{path}: {mas}.{role}", texts)
        for mas, section in raw.items()
        for role, texts in _section(f"{path}: {mas}", section).items()
    }
    return DomainPrompts(file=str(path), memory_slot=slot, roles=roles)


def domains(folder: Path = PROMPTS) -> tuple[str, ...]:
    """All that have a prompt file."""
    return tuple(sorted(file.stem for file in folder.glob("*.yaml")))


def check_roles(mas: str, roles: Iterable[str], folder: Path = PROMPTS) -> None:
    """Read every prompt file and refuse a role that none of them has, so that it shows before any work is done.

    Raises ``ValueError``; one for a role names the nearest that there is.
    """
    known = {key for domain in domains(folder) for key in load_prompts(domain, folder).roles}
    for key in (f"{mas}.{role}" for role in roles):
        if key not in known:
            close = difflib.get_close_matches(key, sorted(known), n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(f"no prompt file in {folder} has the role {key}{hint}")


@dataclass(frozen=True)
class RenderedPrompt:
    """A prompt ready to be sent.

    Attributes:
        text: the messages without the chat template, memory text included; what a trace shows.
        prefix_ids: tokens before the place where latents are injected.
        suffix_ids: tokens after it. Both together are the whole prompt, with or without latents.
    """

    text: str
    prefix_ids: tuple[int, ...]
    suffix_ids: tuple[int, ...]


def render(
    tokenizer: PreTrainedTokenizerBase,
    messages: Sequence[Message],
    memory_text: str = "",
    *,
    injection: Injection = "before_generation_prompt",
    memory_slot: str = MEMORY_SLOT,
) -> RenderedPrompt:
    """Apply the chat template once and tokenise both halves.

    Args:
        tokenizer: with a chat template.
        messages: at least one of them from the user.
        memory_text: put into the last user message through ``memory_slot``; empty leaves the message as it is.
        injection: latents go to the end of the last user turn, or behind the generation prompt
            (then ``suffix_ids`` is empty). The ids of the whole prompt are the same either way.
        memory_slot: :attr:`DomainPrompts.memory_slot` of the task's domain.

    Raises:
        ValueError: no chat template, no user message, a template that repeats or drops the user's text,
            an unknown ``injection``.
    """
    if injection not in ("before_generation_prompt", "after_generation_prompt"):
        raise ValueError(f"injection is {injection!r}; give before_generation_prompt or after_generation_prompt")
    turns, last = with_memory(messages, memory_text, memory_slot), _last_user(messages)
    before, after = _split(tokenizer, turns, last)
    head, tail = _token_ids(tokenizer, before), _token_ids(tokenizer, after)
    if injection == "after_generation_prompt":
        head, tail = head + tail, ()
    return RenderedPrompt(prompt_text(turns), head, tail)


def with_memory(messages: Sequence[Message], memory_text: str, memory_slot: str = MEMORY_SLOT) -> tuple[Message, ...]:
    """``messages`` with ``memory_text`` in the slot of the last user message; an empty text leaves it as it is.

    Raises ``ValueError`` when there is no user message.
    """
    last = _last_user(messages)
    content = messages[last].content.rstrip()
    if memory_text:
        content = memory_slot.format(memory=memory_text, prompt=content).rstrip()
    return (*messages[:last], replace(messages[last], content=content), *messages[last + 1 :])


def prompt_text(turns: Sequence[Message]) -> str:
    """The messages without the chat template, as a trace shows them."""
    return "\n\n".join(turn.content for turn in turns)


def _split(tokenizer: PreTrainedTokenizerBase, turns: Sequence[Message], last: int) -> tuple[str, str]:
    """The templated text before and after the end of turn ``last``'s content, found by a marker put there."""
    if not tokenizer.chat_template:
        raise ValueError(
            f"the tokenizer of {tokenizer.name_or_path!r} has no chat template; use an instruction-tuned model, "
            "or set tokenizer.chat_template"
        )
    chat = [{"role": turn.role, "content": turn.content} for turn in turns]
    marker = _MARKER
    while any(marker in turn.content for turn in turns):
        marker += "X"
    chat[last]["content"] += marker
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    halves = str(text).split(marker)
    if len(halves) != 2:
        raise ValueError(
            f"the end of the user's text shows up {len(halves) - 1} times in the templated prompt of "
            f"{tokenizer.name_or_path!r}, expected once; its chat template rewrites what users say"
        )
    return halves[0], halves[1]


def _token_ids(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[int, ...]:
    return tuple(tokenizer.encode(text, add_special_tokens=False))


def _last_user(messages: Sequence[Message]) -> int:
    places = [place for place, message in enumerate(messages) if message.role == "user"]
    if not places:
        raise ValueError(f"a prompt needs a user message, got roles {[message.role for message in messages]}")
    return places[-1]


def _role(where: str, raw: object) -> RolePrompts:
    texts = {key: _text(f"{where}.{key}", value) for key, value in _section(where, raw).items()}
    if "profile" not in texts:
        raise ValueError(f"{where}.profile is missing; every role needs one")
    return RolePrompts(where=where, profile=texts.pop("profile"), templates=texts)


def _section(where: str, raw: object) -> dict[str, object]:
    if not isinstance(raw, dict) or not raw:
        raise ValueError(f"{where} must be a mapping with at least one key, got {raw!r}")
    return {str(key): value for key, value in raw.items()}


def _text(where: str, raw: object) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise ValueError(f"{where} must be a text that is not empty, got {raw!r}")
    return raw.strip()


def _check_placeholders(
    where: str, template: str, known: Mapping[str, str] | Sequence[str], all_needed: bool = False
) -> None:
    try:
        used = {field for _, field, _, _ in Formatter().parse(template) if field is not None}
    except ValueError as error:
        raise ValueError(
            f"{where} has a brace without its partner ({error}); write {{{{ or }}}} for a plain one"
        ) from error
    if not used <= set(known) or (all_needed and used != set(known)):
        raise ValueError(f"{where} has the placeholders {_braces(sorted(used))}, it may have {_braces(known)}")


def _braces(names: Mapping[str, str] | Sequence[str]) -> str:
    return " ".join(f"{{{name}}}" for name in names) or "(none)"
