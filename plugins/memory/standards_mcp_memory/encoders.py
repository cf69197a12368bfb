"""Embedding models: built-in text encoders, Voyage and OpenAI-compatible endpoints."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import anyio
import anyio.to_thread
import httpx2
from pydantic import SecretStr
from typing_extensions import override

from standards_mcp import ApiError, ServiceError, TimedOutError, may_use_proxy
from standards_mcp_encoders import shown_spec

from .process_memory import return_memory
from .records import Vectors
from .settings import VOYAGE, MemorySettings

if TYPE_CHECKING:
    from standards_mcp_encoders import TextEncoder

Kind: TypeAlias = Literal["query", "document"]
_TEXTS_IN_REQUEST: Final = 128
"""The limit of Voyage."""
_DENIED: Final = (401, 403)
_TOO_MANY: Final = 429
_OK: Final = 200
_MATRIX: Final = 2


class Encoder(ABC):
    """Turns texts into vectors of length 1."""

    @abstractmethod
    async def name(self) -> str:
        """Return the name of its model. Vectors of equal names can be compared.

        Raises:
            ApiError: It cannot be opened.
        """

    @abstractmethod
    async def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return a row for each text; *texts* has one text at least.

        Raises:
            ApiError: It fails.
            TimedOutError: It does not answer in time.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close the encoder."""


class BuiltInEncoder(Encoder):
    """A text encoder of the catalog, in this process.

    Args:
        spec: Its name in the setting `model`.
        threads: Number of threads of ``minilm``; None for one per processor.
    """

    def __init__(self, spec: str, threads: int | None = None) -> None:
        self._spec, self._threads = spec, threads
        self._opening = anyio.Lock()
        # Each text takes memory while it is encoded, so the calls take turns.
        self._turn = anyio.CapacityLimiter(1)
        self._encoder: TextEncoder | None = None

    @override
    async def name(self) -> str:
        return (await self._opened()).name

    @override
    async def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        encoder = await self._opened()
        return await anyio.to_thread.run_sync(encoder.encode, texts, limiter=self._turn)

    @override
    async def aclose(self) -> None:
        self._encoder = None

    async def _opened(self) -> TextEncoder:
        async with self._opening:
            if self._encoder is None:
                try:
                    self._encoder = await anyio.to_thread.run_sync(self._open)
                except ServiceError as error:
                    raise ApiError(
                        f"The encoder {self._spec} cannot be used: {error}. Check "
                        "[plugins.memory] model."
                    ) from error
            return self._encoder

    def _open(self) -> TextEncoder:
        from standards_mcp_encoders import open_encoder  # noqa: PLC0415  - takes long

        encoder = open_encoder(self._spec, threads=self._threads)
        return_memory()
        return encoder


class RestEncoder(Encoder):
    """A model behind an HTTP endpoint.

    Args:
        spec: Its name in the setting `model`.
        model: Its name in requests.
        wants_kind: True if the service embeds queries and documents differently.
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
        import numpy as np  # noqa: PLC0415  - not needed before the first call

        starts = range(0, len(texts), _TEXTS_IN_REQUEST)
        batches = [texts[start : start + _TEXTS_IN_REQUEST] for start in starts]
        return np.vstack([await self._post(batch, kind) for batch in batches])

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
            # The text of the error may contain the whole address, with its secrets.
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
                # The client reads all root certificates, which takes a tenth of a second.
                self._client = await anyio.to_thread.run_sync(
                    lambda: httpx2.AsyncClient(timeout=None, trust_env=may_use_proxy(self._url))
                )
            return self._client

    def _refusal(self, status: int) -> ApiError:
        if status in _DENIED:
            cause = f"refuses the key ({status}). Check [plugins.memory] embedding_api_key"
            cause += ", or VOYAGE_API_KEY." if self._wants_kind else "."
        elif status == _TOO_MANY:
            cause = "limits the rate of requests (429). Try again later."
        else:
            cause = f"answered {status}. Check [plugins.memory] model."
        return ApiError(f"The encoder {self._name} {cause}", status=status)

    def _vectors(self, body: bytes, count: int) -> Vectors:
        import numpy as np  # noqa: PLC0415  - as above

        try:
            rows = sorted(json.loads(body)["data"], key=lambda row: row["index"])
            if [row["index"] for row in rows] != list(range(count)):
                raise self._invalid_answer()
            vectors = np.array([row["embedding"] for row in rows], dtype=np.float32)
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
            raise self._invalid_answer() from error
        if vectors.ndim != _MATRIX or len(vectors) != count:
            raise self._invalid_answer()
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        if not np.all((lengths > 0) & np.isfinite(lengths)):
            raise self._invalid_answer()
        return np.asarray(vectors / lengths, dtype=np.float32)

    def _invalid_answer(self) -> ApiError:
        return ApiError(
            f"The encoder {self._name} does not answer with a vector for each text. Check "
            "[plugins.memory] model."
        )


def make_encoder(settings: MemorySettings, threads: int | None = None) -> Encoder:
    """Return the encoder of the settings; its first call opens it.

    Args:
        threads: See `BuiltInEncoder`.
    """
    url, key = settings.encoder()
    if url is None:
        return BuiltInEncoder(settings.model, threads)
    if settings.model.startswith(VOYAGE):
        name, wants_kind = settings.model.removeprefix(VOYAGE), True
    else:
        name, wants_kind = settings.model.partition("#")[2], False
    return RestEncoder(
        settings.model, url, name, key, wants_kind=wants_kind, timeout=settings.timeout
    )
