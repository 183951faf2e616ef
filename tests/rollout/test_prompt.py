from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from data.assets import resolve_model
from rollout.mas.mas import Message
from rollout.prompt import Injection, check_roles, domains, load_prompts, render

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
TRIMMING = "{% for m in messages %}[{{ m.role }}] {{ m.content | trim }} [/{{ m.role }}]{% endfor %}>>"
SYSTEM = Message("system", "You answer.")
ASK = (SYSTEM, Message("user", "Who wrote Emma?"))


def bytes_tokenizer(template: str | None) -> PreTrainedTokenizerBase:
    """One token a byte, chat markers whole: what is decoded is exactly what was rendered."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE({char: place for place, char in enumerate(alphabet)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, additional_special_tokens=["<|im_start|>", "<|im_end|>"])
    tokenizer.chat_template = template
    return tokenizer


def decode(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(list(ids), clean_up_tokenization_spaces=False))


TINY = bytes_tokenizer(CHATML)


def test_the_cut_is_at_the_end_of_the_last_user_turn() -> None:
    prompt = render(TINY, ASK)
    assert decode(TINY, prompt.prefix_ids) == (
        "<|im_start|>system\nYou answer.<|im_end|>\n<|im_start|>user\nWho wrote Emma?"
    )
    assert decode(TINY, prompt.suffix_ids) == "<|im_end|>\n<|im_start|>assistant\n"
    assert prompt.text == "You answer.\n\nWho wrote Emma?"


def test_or_behind_the_generation_prompt_with_the_same_tokens() -> None:
    before = render(TINY, ASK)
    after = render(TINY, ASK, injection="after_generation_prompt")
    assert after.suffix_ids == ()
    assert after.prefix_ids == before.prefix_ids + before.suffix_ids


def test_an_earlier_user_turn_is_left_whole() -> None:
    chat = [Message("user", "Hello."), Message("assistant", "Yes?"), Message("user", "Hello.")]
    prompt = render(TINY, chat)
    assert decode(TINY, prompt.prefix_ids).count("Hello.<|im_end|>") == 1
    assert decode(TINY, prompt.prefix_ids).endswith("user\nHello.")


@pytest.mark.parametrize("injection", ["before_generation_prompt", "after_generation_prompt"])
@given(system=st.text(max_size=20), user=st.text(max_size=40))
@settings(deadline=None)
def test_both_halves_are_the_templated_prompt(injection: Injection, system: str, user: str) -> None:
    chat = [{"role": "system", "content": system}, {"role": "user", "content": user.rstrip()}]
    prompt = render(TINY, [Message("system", system), Message("user", user)], injection=injection)
    whole = TINY.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert decode(TINY, prompt.prefix_ids + prompt.suffix_ids) == whole


def test_a_template_that_strips_whitespace() -> None:
    tokenizer = bytes_tokenizer(TRIMMING)
    prompt = render(tokenizer, [Message("user", "  Who? \n")])
    assert decode(tokenizer, prompt.prefix_ids) == "[user] Who?"
    assert decode(tokenizer, prompt.suffix_ids) == " [/user]>>"


def test_memory_text_comes_before_the_question_and_shows_in_the_trace() -> None:
    prompt = render(TINY, ASK, "Jane {Austen}", memory_slot="Notes: {memory}\n{prompt}")
    assert prompt.text == "You answer.\n\nNotes: Jane {Austen}\nWho wrote Emma?"
    assert decode(TINY, prompt.prefix_ids).endswith("user\nNotes: Jane {Austen}\nWho wrote Emma?")
    assert prompt.suffix_ids == render(TINY, ASK).suffix_ids


@pytest.mark.parametrize(
    ("template", "messages", "message"),
    [
        (None, ASK, "has no chat template"),
        (CHATML, (SYSTEM,), r"needs a user message, got roles \['system'\]"),
        ("{{ messages[0].content }}", ASK, "0 times"),
        ("{{ messages[1].content }} {{ messages[1].content }}", ASK, "2 times"),
    ],
)
def test_what_cannot_be_rendered_is_refused(template: str | None, messages: Sequence[Message], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        render(bytes_tokenizer(template), messages)


def test_an_unknown_injection_is_refused() -> None:
    with pytest.raises(ValueError, match="'middle'"):
        render(TINY, ASK, injection="middle")  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_real_tokenizer_agrees_with_its_own_template() -> None:
    tokenizer = AutoTokenizer.from_pretrained(resolve_model("smollm2-135m-instruct"))
    prompts = load_prompts("qa")
    for role, template in (("assistant", "answer"), ("user_proxy", "finish")):
        values = {"question": "Who wrote Emma?"} | ({"reply": "Jane Austen."} if template == "finish" else {})
        messages = prompts.role("autogen", role).messages(template, **values)
        prompt = render(tokenizer, messages, memory_slot=prompts.memory_slot)
        chat = [{"role": message.role, "content": message.content} for message in messages]
        text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        assert prompt.prefix_ids + prompt.suffix_ids == tuple(tokenizer.encode(text, add_special_tokens=False))
        assert decode(tokenizer, prompt.suffix_ids) == "<|im_end|>\n<|im_start|>assistant\n"
        assert len(prompt.prefix_ids + prompt.suffix_ids) < 60


@pytest.mark.parametrize("domain", domains())
def test_every_prompt_file_loads_and_its_profiles_are_short(domain: str) -> None:
    prompts = load_prompts(domain)
    assert all(len(role.profile.split()) <= 20 for role in prompts.roles.values())


GOOD = "memory_slot: '{memory} {prompt}'\nteam:\n  solver:\n    profile: You solve.\n    answer: 'Q: {question}'\n"


def write(folder: Path, text: str) -> Path:
    (folder / "chess.yaml").write_text(text, encoding="utf-8")
    return folder


def test_a_role_gives_an_agent_and_its_messages(tmp_path: Path) -> None:
    prompts = load_prompts("chess", write(tmp_path, GOOD))
    agent = prompts.agent("team", "solver", "solver_1")
    assert (agent.name, agent.role, agent.profile) == ("solver_1", "solver", "You solve.")
    assert prompts.agent("team", "solver").name == "solver"
    system, user = prompts.role("team", "solver").messages("answer", question="e4?")
    assert (system, user) == (Message("system", "You solve."), Message("user", "Q: e4?"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (GOOD, "", "chess.yaml must be a mapping"),
        ("You solve.", "' '", r"chess.yaml: team.solver.profile must be a text that is not empty"),
        ("profile: You solve.", "name: x", r"chess.yaml: team.solver.profile is missing"),
        ("{memory} {prompt}", "{memory}", r"chess.yaml: memory_slot has the placeholders {memory}"),
        ("memory_slot", "memry_slot", r"chess.yaml: memory_slot must be a text that is not empty, got None"),
        ("{memory} {prompt}", "{memory} {prompt} {", r"chess.yaml: memory_slot has a brace without its partner"),
        (
            "  solver:\n    profile: You solve.\n    answer: 'Q: {question}'\n",
            "  solver: 3\n",
            r"team.solver must be a map",
        ),
    ],
)
def test_a_bad_file_is_an_error_that_names_file_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_prompts("chess", write(tmp_path, GOOD.replace(old, new)))


def test_what_a_file_lacks_is_named_when_it_is_asked_for(tmp_path: Path) -> None:
    prompts = load_prompts("chess", write(tmp_path, GOOD))
    with pytest.raises(ValueError, match=r"chess.yaml: team.judge is missing; the file has team.solver"):
        prompts.role("team", "judge")
    with pytest.raises(ValueError, match=r"team.solver.refine is missing; add a template with {reply}"):
        prompts.role("team", "solver").fill("refine", reply="x")
    with pytest.raises(ValueError, match=r"team.solver.answer has the placeholders {question}, it may have {task}"):
        prompts.role("team", "solver").fill("answer", task="x")


def test_roles_are_looked_for_in_every_file(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    (tmp_path / "go.yaml").write_text(GOOD.replace("solver", "judge"), encoding="utf-8")
    assert domains(tmp_path) == ("chess", "go")
    check_roles("team", ("solver", "judge"), tmp_path)
    with pytest.raises(ValueError, match=r"has the role team\.jduge; did you mean team\.judge\?"):
        check_roles("team", ("solver", "jduge"), tmp_path)
    with pytest.raises(ValueError, match=r"has the role x\.y$"):
        check_roles("x", ("y",), tmp_path)


def test_an_empty_profile_anywhere_is_found_before_it_is_used(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    (tmp_path / "go.yaml").write_text(GOOD.replace("You solve.", "''"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"go\.yaml: team\.solver\.profile must be a text that is not empty"):
        check_roles("team", ("solver",), tmp_path)
