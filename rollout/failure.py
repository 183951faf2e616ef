"""Why an episode did not come to its end, as ``"<what failed>: <reason>"``, and what a batch makes of it.

    engine        the engine could not answer a call, after whatever retries it makes
    agents        the MAS, its prompts or its memory raised
    environment   the world that is acted in raised
    scoring       the benchmark's rule raised
    step limit    a world's ``max_steps`` were over before the task was done; its scores stand

All but the last score zero. An engine that can serve nobody is no episode's failure: it ends the run.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NoReturn

from data.trajectory import Trajectory
from rollout.engine import EngineDiedError, EngineError
from rollout.teams_episode import TeamsEpisode

Part = Literal["agents", "environment", "scoring"]

STEP_LIMIT = "step limit"
QUOTED = 3

log = logging.getLogger(__name__)


class EpisodeError(Exception):
    """Ends one episode. The text is its :attr:`data.trajectory.Trajectory.failure`."""


@contextmanager
def blame(part: Part) -> Iterator[None]:
    """Whatever is raised inside is the failure of this episode, and ``part``'s unless it came from the engine.

    This is where code of others runs (a MAS, a world, a scoring rule): any exception of theirs costs their episode.

    Raises:
        EpisodeError: instead of any other exception.
        EngineDiedError: as it is, also out of a group.
        asyncio.CancelledError: when it is the episode that is cancelled, not a call that a MAS gave up itself.
    """
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise EpisodeError(f"{part}: a call was cancelled and then waited for") from error
    except Exception as error:
        cause = _cause(error)
        if isinstance(cause, (EngineDiedError, EpisodeError)):
            raise cause from cause.__cause__
        log.debug("an episode failed", exc_info=error)
        raise EpisodeError(_reason(part, cause)) from error


def broke_off(trajectory: Trajectory) -> bool:
    """Whether the episode has no scores of its own. One that ran out of steps has."""
    return trajectory.failure is not None and not trajectory.failure.startswith(STEP_LIMIT)


def check_any_finished(trajectories: Sequence[Trajectory]) -> None:
    """Raises ``RuntimeError`` with the first reasons when every one of ``trajectories`` broke off."""
    if trajectories and all(map(broke_off, trajectories)):
        _raise_reasons([f"task {each.task.id}: {each.failure}" for each in trajectories])


def check_any_aggregate(episodes: Sequence[TeamsEpisode]) -> None:
    """Raises ``RuntimeError`` with the first reasons when not one of ``episodes`` came to an aggregate."""
    if episodes and all(episode.failure for episode in episodes):
        _raise_reasons([f"task {each.task.id}: {each.failure}" for each in episodes])


def _raise_reasons(reasons: Sequence[str]) -> NoReturn:
    quoted = list(dict.fromkeys(reasons))[:QUOTED]
    raise RuntimeError(f"all {len(reasons)} episodes failed; the first reasons:\n  " + "\n  ".join(quoted))


def _cause(error: Exception) -> Exception:
    """The dead engine or the engine's error within a group, else ``error`` itself."""
    for kind in (EngineDiedError, EngineError):
        inner: BaseException | None = error.subgroup(kind) if isinstance(error, ExceptionGroup) else None
        while isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        if isinstance(inner, Exception):
            return inner
    return error


def _reason(part: Part, error: Exception) -> str:
    if isinstance(error, EngineError):
        return f"engine: {error}"
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{part}: {type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
