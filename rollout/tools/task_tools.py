"""Which tools the agents of MagenticOne get for a task: search and pages, the task's file, Python."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from data.task import Task
from rollout.tools.corpus_page import CorpusPageTool
from rollout.tools.files import FileTool
from rollout.tools.page import PageTool
from rollout.tools.python import PythonTool
from rollout.tools.search import CorpusSearch, SearchTool, WebSearch
from rollout.tools.tool import Tool


class WithAttachments(Protocol):
    """A benchmark some of whose tasks come with a file, such as :class:`data.gaia.GAIA`."""

    def attachment(self, task: Task) -> Path | None:
        """The file of ``task``, ``None`` for a task without one."""
        ...


class TaskTools:
    """Tools by agent. Give ``corpus`` or ``web``, or neither for agents that cannot search.

    Args:
        corpus: searched offline in place of the web: a folder or a JSONL file.
        web: a search API; pages are then fetched.
        attachments: the benchmark, where its tasks come with files.
        python: whether the executor can run programs, in the sandbox.
        max_characters: of a page, a file, or what a program printed, that an agent reads at once (ours; the LTS paper
            calls 2000 characters typical of an agent's output).
        results: of one search.

    Raises:
        ValueError: ``corpus`` and ``web`` together.
    """

    def __init__(
        self,
        corpus: Path | None = None,
        web: WebSearch | None = None,
        attachments: WithAttachments | None = None,
        python: bool = True,
        max_characters: int = 2000,
        results: int = 5,
    ) -> None:
        if corpus is not None and web is not None:
            raise ValueError("TaskTools: give corpus or web, not both")
        self._attachments = attachments
        self._max_characters = max_characters
        self._web = _web_tools(corpus, web, max_characters, results)
        self._executor: tuple[Tool, ...] = (PythonTool(max_characters=max_characters),) if python else ()
        self._copies: dict[str, tempfile.TemporaryDirectory[str]] = {}

    def __call__(self, task: Task) -> Mapping[str, Sequence[Tool]]:
        """The tools for ``task``. Raises what fetching its attachment raises."""
        return {"web": self._web, "files": self._files(task), "executor": self._executor}

    def _files(self, task: Task) -> tuple[Tool, ...]:
        attachment = self._attachments.attachment(task) if self._attachments is not None else None
        if attachment is None:
            return ()
        if task.id not in self._copies:
            # A folder of its own: the benchmark's holds other tasks' files and may hold the answers.
            self._copies[task.id] = tempfile.TemporaryDirectory(prefix="task-file-")
            shutil.copy(attachment, self._copies[task.id].name)
        return (FileTool(Path(self._copies[task.id].name), self._max_characters),)


def _web_tools(corpus: Path | None, web: WebSearch | None, max_characters: int, results: int) -> tuple[Tool, ...]:
    if corpus is not None:
        source = CorpusSearch(corpus)
        return SearchTool(source, results), CorpusPageTool(source.documents, max_characters)
    if web is not None:
        return SearchTool(web, results), PageTool(max_characters=max_characters)
    return ()
