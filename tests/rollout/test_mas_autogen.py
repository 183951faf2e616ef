from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rollout.mas.autogen import AutoGen
from rollout.mas.mas import MAS
from tests.rollout.scripted import QUESTION, TASK, Script


def script() -> Script:
    return Script(lambda agent: {"assistant": " Cusco\n", "user_proxy": "Lima \n"}[agent.name])


def test_the_proxy_has_the_last_word() -> None:
    played, mas = script(), AutoGen()
    seam: MAS = mas
    assert asyncio.run(seam.run(TASK, played.act)) == "Lima"
    assert played.names() == ["assistant", "user_proxy"]
    assert tuple(played.calls) == mas.agents("qa")


def test_what_each_reads() -> None:
    played = script()
    asyncio.run(AutoGen().run(TASK, played.act))
    assert QUESTION in played.user_text("assistant")
    assert QUESTION in played.user_text("user_proxy")
    assert "Colleague: Cusco\n" in played.user_text("user_proxy")
    for agent in played.calls:
        system, user = played.shown[agent.name]
        assert (system.role, system.content, user.role) == ("system", agent.profile, "user")


def test_braces_in_a_reply_or_question_are_plain_text() -> None:
    played = Script(lambda agent: "{reply} {0}")
    asyncio.run(AutoGen().run(replace(TASK, question="What does {x} mean?"), played.act))
    assert "What does {x} mean?" in played.user_text("user_proxy")
    assert "{reply} {0}" in played.user_text("user_proxy")


def test_a_domain_without_prompts_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"no prompts for domain 'cooking'.*there are prompts for:.*qa"):
        asyncio.run(AutoGen().run(replace(TASK, domain="cooking"), script().act))
