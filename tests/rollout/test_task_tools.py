from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from data.gaia import GAIA
from rollout.tools.task_tools import TaskTools
from rollout.tools.tool import Tool, ToolResult

GAIA_SAMPLE = GAIA(source="sample")
TASKS = GAIA_SAMPLE.tasks("validation")
CORPUS = Path("data/sample/corpus.jsonl")


def names(tools: TaskTools, place: int) -> dict[str, list[str]]:
    return {agent: [tool.name for tool in has] for agent, has in tools(TASKS[place]).items()}


def call(tool: Tool, **arguments: Any) -> ToolResult:
    return asyncio.run(tool.call(arguments))


def test_who_gets_what() -> None:
    tools = TaskTools(corpus=CORPUS, attachments=GAIA_SAMPLE)
    with_file = next(place for place, task in enumerate(TASKS) if task.metadata["file_name"] == "orders.csv")
    assert names(tools, with_file) == {
        "web": ["search", "open_page"],
        "files": ["read_file"],
        "executor": ["python"],
    }
    without = next(place for place, task in enumerate(TASKS) if not task.metadata["file_name"])
    assert names(tools, without)["files"] == []
    assert names(TaskTools(python=False), with_file) == {"web": [], "files": [], "executor": []}


def test_only_the_tasks_own_file_can_be_read() -> None:
    """The benchmark's folder has the answers beside it."""
    tools = TaskTools(attachments=GAIA_SAMPLE)
    task = next(task for task in TASKS if task.metadata["file_name"] == "orders.csv")
    (read,) = tools(task)["files"]
    assert "there are ['orders.csv']" in call(read, path="metadata.jsonl").error
    assert call(read, path="../metadata.jsonl").error


def test_the_corpus_is_searched_and_opened() -> None:
    search, open_page = TaskTools(corpus=CORPUS, max_characters=40)(TASKS[0])["web"]
    assert "https://example.org/linden/gyms" in call(search, query="gyms in Linden").text
    page = call(open_page, url="https://example.org/linden/gyms")
    assert page.text.startswith("Gyms in Linden")
    assert "more characters" in page.text


def test_corpus_and_web_together_are_refused() -> None:
    with pytest.raises(ValueError, match="give corpus or web, not both"):
        TaskTools(corpus=CORPUS, web=object())  # type: ignore[arg-type]
