"""Encoders behind an address: Voyage's, and those of the shape of OpenAI's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio
import anyio.to_thread
import httpx2
from pydantic import SecretStr
from typing_extensions import override

from standards_mcp import ApiError, TimedOutError, may_use_proxy
from standards_mcp_encoders import shown_spec
from standards_mcp_memory.records import Vectors

from .base import Encoder, Kind

MOST_TEXTS: Final = 128
"""In one request, as Voyage has it."""
_DENIED: Final = (401, 403)
_TOO_MANY: Final = 429
_OK: Final = 200
_ROWS: Final = 2


class RestEncoder(Encoder):
    """A model behind an address.

    Args:
        spec: What the settings call it.
        model: What the service calls it.
        wants_kind: It makes other vectors of queries than of documents.
    """

    def __init__(
        self,
        spec: str,
        url: str,
        model: str,
        key: SecretStr | None,
        *,
        wants_kind: bool,
        timeout: float,
    ) -> None:
        self._name = shown_spec(spec)
        self._url, self._model, self._key = url, model, key
        self._wants_kind, self._timeout = wants_kind, timeout
        self._opening = anyio.Lock()
        self._client: httpx2.AsyncClient | None = None

    @override
    async def name(self) -> str:
        return self._name

    @override
    async def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        import numpy as np  # noqa: PLC0415  - a server without calls has none

        starts = range(0, len(texts), MOST_TEXTS)
        parts = [await self._post(texts[start : start + MOST_TEXTS], kind) for start in starts]
        return np.vstack(parts)

    @override
    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _post(self, texts: Sequence[str], kind: Kind) -> Vectors:
        body: dict[str, Any] = {"input": list(texts), "model": self._model}
        if self._wants_kind:
            body["input_type"] = kind
        client = await self._opened()
        try:
            with anyio.fail_after(self._timeout):
                response = await client.post(self._url, json=body, headers=self._headers())
        except TimeoutError:
            raise TimedOutError(
                f"The encoder {self._name} did not answer within {self._timeout:g} s. Try again, "
                "or set [plugins.memory] timeout."
            ) from None
        except httpx2.RequestError as error:
            # Its text may have the whole address.
            raise ApiError(
                f"The encoder {self._name} at {shown_spec(self._url)} cannot be reached "
                f"({type(error).__name__}). Check the network and [plugins.memory] model."
            ) from None
        if response.status_code != _OK:
            raise self._refusal(response.status_code)
        return await anyio.to_thread.run_sync(self._vectors, response.content, len(texts))

    def _headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self._key.get_secret_value()}"} if self._key else {}

    async def _opened(self) -> httpx2.AsyncClient:
        async with self._opening:
            if self._client is None:
                # It reads the certificates of all authorities, which takes a tenth of a second.
                self._client = await anyio.to_thread.run_sync(
                    lambda: httpx2.AsyncClient(timeout=None, trust_env=may_use_proxy(self._url))
                )
            return self._client

    def _refusal(self, status: int) -> ApiError:
        if status in _DENIED:
            what = f"refuses the key ({status}). Check [plugins.memory] embedding_api_key"
            what += ", or VOYAGE_API_KEY." if self._wants_kind else "."
        elif status == _TOO_MANY:
            what = "takes no more requests for now (429). Try again later."
        else:
            what = f"answered {status}. Check [plugins.memory] model."
        return ApiError(f"The encoder {self._name} {what}", status=status)

    def _vectors(self, body: bytes, count: int) -> Vectors:
        import numpy as np  # noqa: PLC0415  - as above

        try:
            rows = sorted(json.loads(body)["data"], key=lambda row: row["index"])
            if [row["index"] for row in rows] != list(range(count)):
                raise self._odd_answer()
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
            raise self._odd_answer() from error
        if vectors.ndim != _ROWS or len(vectors) != count:
            raise self._odd_answer()
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        if not np.all((lengths > 0) & np.isfinite(lengths)):
            raise self._odd_answer()
        return np.asarray(vectors / lengths, dtype=np.float32)

    def _odd_answer(self) -> ApiError:
        return ApiError(
            f"The encoder {self._name} does not answer with a vector for each text. Check "
            "[plugins.memory] model."
        )
