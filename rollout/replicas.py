"""Which of several replicas a request goes to, and which of them are out: no HTTP here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from rollout.api_key import check_no_secret

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0


@dataclass(eq=False)
class Replica:
    """One server.

    Attributes:
        url: without a slash at its end.
        in_flight: requests that it is answering.
        live: takes requests.
        last_error: what keeps it out, empty while it is live.
    """

    url: str
    in_flight: int = 0
    live: bool = True
    last_error: str = ""

    def note(self, error: str) -> None:
        """Out because of ``error``; with an empty one, live."""
        self.live, self.last_error = not error, error

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Counts one request in flight."""
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1


class Replicas:
    """A fixed list of replicas, some of them out.

    Args:
        urls: ``http://host:port`` of each, without ``/v1``.

    Raises:
        ValueError: no URL, one twice, one that is not of that form or holds a password; the message names the key.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        for place, url in enumerate(urls):
            _check_url(f"urls[{place}]", url)
        self.all = tuple(Replica(url.rstrip("/")) for url in urls)
        if not self.all or len({replica.url for replica in self.all}) < len(self.all):
            raise ValueError(f"urls: give at least one URL and none of them twice, got {list(urls)}")

    def choose(self, tried: Collection[Replica] = ()) -> Replica | None:
        """The live replica with the fewest requests in flight, first of equals; one not ``tried`` if there is any."""
        live = [replica for replica in self.all if replica.live]
        fresh = [replica for replica in live if replica not in tried]
        return min(fresh or live, key=lambda replica: replica.in_flight, default=None)

    def report(self) -> str:
        """Every replica with what keeps it out."""
        return "; ".join(f"{replica.url}: {replica.last_error or 'no error'}" for replica in self.all)


def wait_s(failed_probes: int) -> float:
    """Seconds until a replica that is out is asked again: 0.5, 1, 2, ... up to 30 (ours)."""
    return float(min(FIRST_WAIT_S * 2 ** min(failed_probes, 16), LONGEST_WAIT_S))


def _check_url(key: str, url: str) -> None:
    check_no_secret(key, url)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.rstrip("/"):
        raise ValueError(f"{key} is {url!r}; give http://host:port of the server, without /v1")
