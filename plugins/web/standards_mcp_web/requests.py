"""Requests to a provider: bounded, tried again where that may help, and never with a redirect."""

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
from .providers import Provider
from .providers.base import Question, Reply, odd_answer

MAX_BYTES: Final = 2_000_000
PAUSES: Final = (0.3, 1.0)
"""Seconds before each further attempt, which vary by a fifth."""
_VARIATION: Final = 0.2
_TOO_MANY: Final = 429
_REDIRECTION, _SERVER = 300, 500


async def ask(
    client: httpx2.AsyncClient, provider: Provider, question: Question, seconds: float
) -> Reply:
    """Return the answer of a provider.

    Args:
        seconds: For all attempts together.

    Raises:
        ApiError: It refuses, fails or does not answer with JSON.
        LimitedError: It was asked too often.
        TimedOutError: It does not answer in time.
    """
    place = urlsplit(question.url).hostname
    try:
        with anyio.fail_after(seconds):
            reply = await _with_retries(lambda: _send(client, provider, question))
    except TimeoutError:
        raise TimedOutError(
            f"{provider.name} did not answer within {seconds:g} s. Try again, or set [plugins.web] "
            "timeout."
        ) from None
    except httpx2.RequestError as error:
        # Its text may have the address with the query.
        raise ApiError(
            f"{provider.name} at {place} cannot be reached ({type(error).__name__}). Check the "
            "network and the address in [plugins.web]."
        ) from None
    if reply.status == _TOO_MANY:
        limit = f"{provider.name} has been asked too often"
        raise LimitedError(limit, provider.wait(reply.headers) or 1)
    if reply.status >= _SERVER:
        raise ApiError(
            f"{provider.name} answered {reply.status}, also when asked again. Try again later.",
            status=reply.status,
        )
    if reply.status >= _REDIRECTION:
        raise provider.refusal(reply)
    return reply


async def _with_retries(send: Callable[[], Awaitable[Reply]]) -> Reply:
    for pause in PAUSES:
        try:
            reply = await send()
        except httpx2.TransportError:
            pass
        else:
            if reply.status < _SERVER:
                return reply
        await anyio.sleep(pause * random.uniform(1 - _VARIATION, 1 + _VARIATION))  # noqa: S311
    return await send()


async def _send(client: httpx2.AsyncClient, provider: Provider, question: Question) -> Reply:
    async with client.stream(
        "GET", question.url, params=question.parameters, headers=question.headers
    ) as response:
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > MAX_BYTES:
                raise odd_answer(provider.name)
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Reply(response.status_code, headers, _json(bytes(body)))


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
