"""Any OpenAI-compatible chat API: text in, text out, no tokens, no latents, nothing to train on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from data.bounds import check_at_least
from rollout.api_key import ApiKey, check_no_secret
from rollout.engine import Completion, EngineDiedError, EngineError, Request, check_completion, check_text_request
from rollout.open_calls import OpenCalls
from rollout.structured_answer import structured_answer

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_KEY_REFUSED = (401, 403)
_SHOWN = 500


class OpenAIEngine:
    """Chat completions behind the :class:`rollout.engine.Engine` seam.

    The ``openai`` client retries what may pass (429, 5xx, lost connections, timeouts) with growing waits. The API
    counts the tokens; their ids and log-probabilities are not known. A structure is checked, not constrained.

    Args:
        model: as the API names it.
        base_url: of the API, ``/v1`` included; ``None``: OpenAI's own, or what ``OPENAI_BASE_URL`` says.
        api_key_env: NAME of the environment variable with the key; ``None`` for a server that asks for none.
        max_retries: of one call (ours).
        timeout_s: of one attempt (ours).
        structure_attempts: at an answer that is held to a structure (ours).
        limit_field: what the API calls the response limit; OpenAI's reasoning models take ``max_completion_tokens``.

    Raises:
        ValueError: the variable is not set; a URL with a password or a query, which saved configs would show; a number
            that means nothing.
    """

    text_only = True

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key_env: str | None = "OPENAI_API_KEY",
        max_retries: int = 5,
        timeout_s: float = 600.0,
        structure_attempts: int = 3,
        limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
    ) -> None:
        check_at_least(0, "engine.init_args", max_retries=max_retries)
        check_at_least(1, "engine.init_args", structure_attempts=structure_attempts)
        check_at_least(0.001, "engine.init_args", timeout_s=timeout_s)
        if base_url is not None:
            _check_base_url(base_url)
        self.model = model
        self.base_url = base_url
        self.api_key = ApiKey(api_key_env) if api_key_env else None
        self.max_retries = max_retries
        self.timeout_s = timeout_s
        self.structure_attempts = structure_attempts
        self.limit_field = limit_field
        self._client: AsyncOpenAI | None = None
        self._calls = OpenCalls("OpenAI")

    async def start(self) -> None:
        from openai import AsyncOpenAI

        self._client = self._client or AsyncOpenAI(
            api_key=self.api_key.read() if self.api_key else "none",
            base_url=self.base_url,
            max_retries=self.max_retries,
            timeout=self.timeout_s,
        )

    async def generate(self, request: Request) -> Completion:
        client = self._client
        if client is None:
            raise EngineDiedError(f"{request.label}: the OpenAI engine was not started")
        check_text_request(request)
        call = structured_answer(request, lambda attempt: self._answer(client, attempt), self.structure_attempts)
        return await self._calls.run(request.label, call)

    async def close(self) -> None:
        client, self._client = self._client, None
        await self._calls.close()
        if client is not None:
            await client.close()

    async def _answer(self, client: AsyncOpenAI, request: Request) -> Completion:
        from openai import APIError

        started = time.perf_counter()
        try:
            response = await client.chat.completions.with_raw_response.create(**self._fields(request))
            answer = response.parse()
        except APIError as error:
            fault = self._fault(error)
        else:
            completion = _completion(request, answer, time.perf_counter() - started, response.retries_taken)
            return check_completion(request, completion, text_only=True)
        # Raised out here: an exception that was being handled goes along as context, and may show the key.
        raise EngineError(f"{request.label}: {fault}")

    def _fields(self, request: Request) -> dict[str, Any]:
        sampling = request.sampling
        return {
            "model": self.model,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages or ()],
            "temperature": sampling.temperature,
            "top_p": 1.0,
            self.limit_field: sampling.max_tokens,
            **({"seed": sampling.seed} if sampling.temperature > 0 else {}),
        }

    def _fault(self, error: Exception) -> str:
        status = getattr(error, "status_code", None)
        if status in _KEY_REFUSED:
            # What such an answer says may quote the key, in part too: it is not shown.
            where = f"the key in ${self.api_key.variable}" if self.api_key else "a call without a key (api_key_env)"
            return f"the API refused {where} (HTTP {status})"
        said = self.api_key.redact(str(error)) if self.api_key else str(error)
        return f"the API failed or refused the call, up to {self.max_retries} retries included ({said[:_SHOWN]})"


def _check_base_url(url: str) -> None:
    check_no_secret("engine.init_args.base_url", url)
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"engine.init_args.base_url is {url!r}; give http(s)://host/v1")


def _completion(request: Request, answer: Any, wall_s: float, retries: int) -> Completion:
    """``answer`` is an ``openai`` ``ChatCompletion``, or text where the server is none of its kind."""
    if not getattr(answer, "choices", None):
        raise EngineError(
            f"{request.label}: what came back is no chat completion; does base_url end as it should (/v1)?"
        )
    choice, usage = answer.choices[0], answer.usage
    details = usage.prompt_tokens_details if usage else None
    return Completion(
        text=choice.message.content or "",
        token_ids=(),
        logprobs=(),
        finish_reason=str(choice.finish_reason),
        cached_tokens=details.cached_tokens if details else None,
        wall_s=wall_s,
        first_token_s=None,
        queue_s=None,
        retries=retries,
        prompt_tokens=usage.prompt_tokens if usage else None,
        completion_tokens=usage.completion_tokens if usage else None,
    )
