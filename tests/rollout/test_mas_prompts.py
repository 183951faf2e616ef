"""Every role of every MAS in every domain: the prompts are there, and they show what the MAS fills in."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from string import Formatter

import pytest
import yaml

from rollout.mas.autogen import AutoGen
from rollout.mas.camel import CAMEL, DONE
from rollout.mas.dylan import TEAM, DyLAN
from rollout.mas.macnet import MacNet
from rollout.mas.mas import MAS
from rollout.mas.playback import playback
from rollout.prompt import PROMPTS, load_prompts
from rollout.structure import Choices
from tests.rollout.scripted import TASK
from tests.rollout.transcript import Call, play, trajectory_of

DOMAINS = ("qa", "code", "planning", "web")
SYSTEMS: tuple[MAS, ...] = (AutoGen(), MacNet(), MacNet(10, topology="net"), CAMEL(), DyLAN())

FILLED = {
    "autogen.assistant": {"answer": {"question"}},
    "autogen.user_proxy": {"finish": {"question", "reply"}},
    "macnet.actor": {
        "answer": {"question"},
        "refine": {"question", "notes"},
        "note": {"reply", "instruction"},
    },
    "macnet.critic": {"instruct": {"question", "reply"}},
    "camel.task_specifier": {"specify": {"question"}, "note": {"task"}},
    "camel.user": {
        "begin": {"question", "dialogue"},
        "continue": {"question", "dialogue"},
        "note": {"instruction"},
    },
    "camel.assistant": {"respond": {"question", "dialogue"}, "note": {"reply"}},
    "camel.summariser": {"summarise": {"question", "dialogue"}},
    "dylan.ranker": {"rank": {"question", "replies"}, "note": {"number", "reply"}},
} | {
    f"dylan.{role}": {
        "answer": {"question"},
        "revise": {"question", "replies"},
        "rate": {"question", "replies"},
        "note": {"number", "reply"},
    }
    for role in TEAM
}

every_domain = pytest.mark.parametrize("domain", DOMAINS)
every_mas = pytest.mark.parametrize("mas", SYSTEMS, ids=["autogen", "macnet", "macnet_net", "camel", "dylan"])


@every_domain
def test_every_role_has_its_templates_with_all_they_are_given(domain: str) -> None:
    found = {
        key: {
            name: {field for _, field, _, _ in Formatter().parse(text) if field is not None}
            for name, text in role.templates.items()
        }
        for key, role in load_prompts(domain).roles.items()
    }
    assert found == FILLED


@every_domain
def test_debaters_differ_in_their_profiles_and_share_the_rest(domain: str) -> None:
    team = [load_prompts(domain).role("dylan", role) for role in TEAM]
    assert len({role.profile for role in team}) == len(TEAM)
    assert all(role.templates == team[0].templates for role in team)


@every_domain
def test_the_user_knows_how_to_end_the_role_play(domain: str) -> None:
    user = load_prompts(domain).role("camel", "user")
    assert DONE in user.templates["continue"]
    assert DONE not in user.templates["begin"]


@every_domain
@every_mas
def test_agents_have_unique_names_and_a_profile(mas: MAS, domain: str) -> None:
    agents = mas.agents(domain)
    assert len({agent.name for agent in agents}) == len(agents)
    assert all(agent.profile.strip() for agent in agents)
    assert agents == mas.agents(domain)


def distinct(number: int, call: Call) -> str:
    """Everyone disagrees, so that every system goes its longest way."""
    return f" reply {number} by {call.agent.name}\n"


@every_domain
@every_mas
def test_every_mas_runs_in_every_domain(mas: MAS, domain: str) -> None:
    choices = ("go north", "go south")
    task = replace(TASK, domain=domain, question="A {brace} and\nsome lines?", choices=choices)
    answer, played = play(mas, task, distinct)
    assert {call.agent for call in played.calls} == set(mas.agents(domain))
    for number, call in enumerate(played.calls):
        system, user = call.messages
        assert (system.role, system.content, user.role) == ("system", call.agent.profile, "user")
        assert task.question in user.content
        assert user.content == user.content.strip()
        assert all(played.replies[later] not in user.content for later in range(number, len(played.calls)))
    (final,) = {number for number, reply in played.replies.items() if reply.strip() == answer}
    assert played.calls[final].structure == Choices(choices)


@every_domain
@every_mas
def test_no_reply_is_lost(mas: MAS, domain: str) -> None:
    """What an agent says is read by someone, or is the answer, or a rating or ranking, or competes to be the answer."""
    _, played = play(mas, replace(TASK, domain=domain, choices=("x",)), distinct)
    for number, (call, reply) in enumerate(played.said()):
        read = any(reply.strip() in later.text for later in played.calls[number + 1 :])
        steers = isinstance(mas, DyLAN) and (call.agent.name == "ranker" or "Rate each" in call.text)
        assert read or steers or call.structure is not None


@every_domain
@every_mas
def test_every_episode_can_be_played_back(mas: MAS, domain: str) -> None:
    task = replace(TASK, domain=domain)
    answer, played = play(mas, task, distinct)
    episode = trajectory_of(mas, task, answer, played)
    assert asyncio.run(mas.run(task, playback(episode))) == answer
    with pytest.raises(ValueError, match=rf"stranger should speak next, the episode of {mas.name} has "):
        playback(episode)(replace(mas.agents(domain)[0], name="stranger"), ())


def test_the_texts_that_measured_results_rest_on_are_what_they_were() -> None:
    raw = yaml.safe_load((PROMPTS / "qa.yaml").read_text(encoding="utf-8"))
    text = yaml.safe_dump({key: raw[key] for key in ("memory_slot", "autogen", "macnet")})
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "b5083425c0601bba"


def test_the_planning_prompts_ask_for_one_action() -> None:
    prompts = load_prompts("planning")
    final = {"autogen.user_proxy": "finish", "macnet.actor": "refine", "camel.summariser": "summarise"}
    final |= {f"dylan.{role}": "revise" for role in TEAM}
    assert all("one action to take now" in prompts.roles[key].templates[name] for key, name in final.items())
