"""Requests to a provider: bounded in time and size, with retries, without redirects."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import httpx2

from standards_mcp import ApiError, TimedOutError

from .errors import LimitedError
from .limits import Limits
from .providers import Provider
from .providers.base import Question, Reply, odd_answer

MAX_BYTES: Final = 2_000_000
PAUSES: Final = (0.3, 1.0)
"""Seconds before each retry, varied by up to a fifth."""
_VARIATION: Final = 0.2
_TOO_MANY_REQUESTS: Final = 429
_FIRST_REDIRECT, _FIRST_SERVER_ERROR = 300, 500


async def ask(
    client: httpx2.AsyncClient,
    provider: Provider,
    question: Question,
    limits: Limits,
    seconds: float,
) -> Reply:
    """Send a request and return the reply.

    Args:
        limits: The rate limit, which counts each request and observes the provider's pauses.
        seconds: Time limit for all attempts together.

    Raises:
        ApiError: The provider refuses, fails or does not answer with JSON.
        LimitedError: A rate limit forbids the request.
        TimedOutError: The provider does not answer in time.
    """
    host = urlsplit(question.url).hostname
    try:
        with anyio.fail_after(seconds):
            reply = await _with_retries(lambda: _send(client, provider, question, limits), limits)
    except TimeoutError:
        raise TimedOutError(
            f"{provider.name} did not answer within {seconds:g} s. Try again, or set [plugins.web] "
            "timeout."
        ) from None
    except httpx2.RequestError as error:
        # The error's own text may contain the address with the query.
        raise ApiError(
            f"{provider.name} at {host} cannot be reached ({type(error).__name__}). Check the "
            "network and the address in [plugins.web]."
        ) from None
    if reply.status == _TOO_MANY_REQUESTS:
        limit = f"{provider.name} has been asked too often"
        wait = provider.wait(reply.headers) or 1
        limits.pause(wait)
        raise LimitedError(limit, wait)
    if reply.status >= _FIRST_SERVER_ERROR:
        raise ApiError(
            f"{provider.name} answered {reply.status}. Try again later.", status=reply.status
        )
    if reply.status >= _FIRST_REDIRECT:
        raise provider.refusal(reply, question)
    return reply


# A loop of our own: stamina reports each retry with the call to logs, and the address contains the
# query.
async def _with_retries(send: Callable[[], Awaitable[Reply]], limits: Limits) -> Reply:
    outcome = await _outcome(send)
    for pause in PAUSES:
        if not _is_transient(outcome) or limits.are_reached():
            break
        await anyio.sleep(pause * random.uniform(1 - _VARIATION, 1 + _VARIATION))  # noqa: S311
        if limits.are_reached():  # another search may have reached them meanwhile
            break
        outcome = await _outcome(send)
    if isinstance(outcome, httpx2.TransportError):
        raise outcome
    return outcome


async def _outcome(send: Callable[[], Awaitable[Reply]]) -> Reply | httpx2.TransportError:
    try:
        return await send()
    except httpx2.TransportError as error:
        return error


def _is_transient(outcome: Reply | httpx2.TransportError) -> bool:
    return isinstance(outcome, httpx2.TransportError) or outcome.status >= _FIRST_SERVER_ERROR


async def _send(
    client: httpx2.AsyncClient, provider: Provider, question: Question, limits: Limits
) -> Reply:
    limits.take(provider.name)
    async with client.stream(
        "GET", question.url, params=question.parameters, headers=question.headers
    ) as response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        limits.pause(provider.wait(headers))
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > MAX_BYTES:
                raise odd_answer(provider.name)
        return Reply(response.status_code, headers, _json(bytes(body)))


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
