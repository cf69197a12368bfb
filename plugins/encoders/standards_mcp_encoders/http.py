"""HTTP client for embedding endpoints of the shape of OpenAI's ``/v1/embeddings``.

The client has synchronous and asynchronous calls, and a circuit breaker. `encoders.HttpEncoder`
uses the synchronous calls; plugins that run in an event loop use the asynchronous calls.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias

import httpx2
import numpy as np
from pydantic import SecretStr

from standards_mcp import is_unencrypted, may_use_proxy

from .errors import EncoderError
from .minilm import Vectors, normalised
from .spec import KEY_IN_THE_OPEN, REMEDY, TIMEOUT, shown_spec

_BATCH: Final = 64
_OK: Final = 200
_ERRNO: Final = re.compile(r"^\[Errno -?\d+\] ")

Cause: TypeAlias = Literal["timeout", "unreachable", "refused", "malformed"]


class EmbeddingError(EncoderError):
    """An embedding endpoint failed; the message names the endpoint and a remedy, and no secret.

    Attributes:
        cause: The kind of failure. ``refused`` means any status except 200, ``malformed`` an answer
            without a vector for each text.
        status: The status of the answer, if there was one.
    """

    def __init__(self, message: str, cause: Cause, status: int | None = None) -> None:
        super().__init__(message)
        self.cause: Cause = cause
        self.status = status


class EmbeddingClient:
    """Client of one endpoint. Several threads may use it.

    Redirects are errors, so that the key is sent to this address only.

    Args:
        spec: The endpoint's address with the model's name after ``#``.
        key: The API key, if the endpoint needs one.
        remedy: The setting to check, for messages.
        timeout: Seconds for one answer.
        batch: Most texts in one request.
        rest: Circuit breaker: after a failure, calls fail at once for *rest* times as long as the
            failed call took. With 4, an endpoint that hangs takes a fifth of the time at most.
        fields: More fields of each request, such as ``input_type``; None leaves a field out.

    Raises:
        EncoderError: The key would be sent unencrypted.
    """

    def __init__(
        self,
        spec: str,
        key: SecretStr | None = None,
        *,
        remedy: str = REMEDY,
        timeout: float = TIMEOUT,
        batch: int = _BATCH,
        rest: float = 0,
        **fields: Any,
    ) -> None:
        self.name = shown_spec(spec)
        self._url, _, model = spec.partition("#")
        self._shown_url = shown_spec(self._url)
        if key and is_unencrypted(self._url):
            raise EncoderError(f"{self._shown_url}: {KEY_IN_THE_OPEN}; {remedy}")
        self._remedy, self._timeout, self._batch, self._rest = remedy, timeout, batch, rest
        self._fields = {"model": model, "encoding_format": "float", **fields}
        self._headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        self._client: httpx2.Client | None = None
        self._failure: EmbeddingError | None = None
        self._open_until = 0.0

    def embed(self, texts: Sequence[str], **fields: Any) -> Vectors:
        """Return a vector of length 1 for each of *texts*, which must not be empty.

        Args:
            fields: More fields of these requests, in place of those of the constructor.

        Raises:
            EmbeddingError: The endpoint does not answer, or its answer has no vectors.
        """
        if self._client is None:
            self._client = httpx2.Client(**self._client_options)
        rows: list[Vectors] = []
        for body, count in self._requests(texts, fields):
            started = self._start_of_call()
            try:
                answer = self._client.post(self._url, json=body)
                rows.append(self._vectors(answer, count))
            except (httpx2.RequestError, EmbeddingError) as error:
                raise self._recorded_failure(error, started) from None
        return np.vstack(rows)

    async def aembed(self, texts: Sequence[str], **fields: Any) -> Vectors:
        """Return the vectors like `embed`, without blocking the event loop."""
        rows: list[Vectors] = []
        options = await asyncio.to_thread(lambda: self._client_options)
        async with httpx2.AsyncClient(**options) as client:
            for body, count in self._requests(texts, fields):
                started = self._start_of_call()
                try:
                    async with asyncio.timeout(self._timeout):
                        answer = await client.post(self._url, json=body)
                    rows.append(await asyncio.to_thread(self._vectors, answer, count))
                except (httpx2.RequestError, TimeoutError, EmbeddingError) as error:
                    raise self._recorded_failure(error, started) from None
        return np.vstack(rows)

    def close(self) -> None:
        """Close the connections of `embed`; a later call opens new ones."""
        if self._client is not None:
            self._client.close()
            self._client = None

    @cached_property
    def _client_options(self) -> dict[str, Any]:
        uses_proxy = may_use_proxy(self._url)
        # Reading the certificates of all authorities takes a tenth of a second. Without TLS, each
        # new client would read them for nothing.
        is_encrypted = self._url.startswith("https:")
        return {
            "headers": self._headers,
            "timeout": self._timeout,
            "trust_env": uses_proxy,
            "verify": is_encrypted and httpx2.create_ssl_context(trust_env=uses_proxy),
        }

    def _requests(
        self, texts: Sequence[str], fields: dict[str, Any]
    ) -> list[tuple[dict[str, Any], int]]:
        starts = range(0, len(texts), self._batch)
        batches = [list(texts[start : start + self._batch]) for start in starts]
        merged = {**self._fields, **fields}
        sent = {name: value for name, value in merged.items() if value is not None}
        return [({**sent, "input": batch}, len(batch)) for batch in batches]

    def _start_of_call(self) -> float:
        """Return the current time, or raise the last failure while the circuit breaker is open."""
        now = time.monotonic()
        if self._failure is not None and now < self._open_until:
            raise EmbeddingError(str(self._failure), self._failure.cause, self._failure.status)
        return now

    def _recorded_failure(self, error: Exception, started: float) -> EmbeddingError:
        now = time.monotonic()
        self._open_until = now + self._rest * (now - started)
        self._failure = error if isinstance(error, EmbeddingError) else self._translated(error)
        return self._failure

    def _translated(self, error: Exception) -> EmbeddingError:
        if isinstance(error, (httpx2.TimeoutException, TimeoutError)):
            return self._error(f"no answer within {self._timeout:g} seconds", "timeout")
        reason = _ERRNO.sub("", " ".join(str(error).split())) or type(error).__name__
        return self._error(reason, "unreachable")

    def _vectors(self, answer: httpx2.Response, count: int) -> Vectors:
        if answer.status_code != _OK:
            reason = f"status {answer.status_code} {answer.reason_phrase}".strip()
            raise self._error(reason, "refused", answer.status_code)
        try:
            rows = sorted(json.loads(answer.content)["data"], key=lambda row: int(row["index"]))
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
            raise self._error(f"unexpected answer ({type(error).__name__})", "malformed") from None
        if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():  # noqa: PLR2004
            raise self._error(f"{len(vectors)} vectors for {count} texts", "malformed")
        return normalised(vectors)

    def _error(self, reason: str, cause: Cause, status: int | None = None) -> EmbeddingError:
        message = f"the embedding endpoint {self._shown_url} failed: {reason}; {self._remedy}"
        return EmbeddingError(message, cause, status)
