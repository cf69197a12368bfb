"""The embedding model of the settings: a built-in text encoder, Voyage, or an endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import anyio
import anyio.to_thread

from standards_mcp import ApiError, ServiceError, TimedOutError
from standards_mcp_encoders import shown_spec

from .records import Vectors
from .settings import VOYAGE, MemorySettings

if TYPE_CHECKING:
    from standards_mcp_encoders import EmbeddingClient, EmbeddingError, TextEncoder

Kind: TypeAlias = Literal["query", "document"]


class Encoder:
    """Turns texts into vectors of length 1. The first call opens the model.

    Args:
        threads: Number of threads of ``minilm``; None for one per processor.
    """

    def __init__(self, settings: MemorySettings, threads: int | None = None) -> None:
        self._settings, self._threads = settings, threads
        self._spec = shown_spec(settings.model)
        self._is_voyage = settings.model.startswith(VOYAGE)
        self._opening = anyio.Lock()
        # Each text takes memory while it is encoded, so the calls take turns.
        self._turn = anyio.CapacityLimiter(1)
        self._model: TextEncoder | EmbeddingClient | None = None

    async def name(self) -> str:
        """Return the name of the model. Vectors of models with equal names can be compared.

        Raises:
            ApiError: The model cannot be opened.
        """
        return self._spec if self._is_voyage else (await self._open_model_once()).name

    async def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        """Return a row for each text; *texts* is not empty.

        Raises:
            ApiError: The model cannot be opened, or fails.
            TimedOutError: An endpoint does not answer in time.
        """
        model = await self._open_model_once()
        from standards_mcp_encoders import EmbeddingClient, EmbeddingError  # noqa: PLC0415  - NumPy

        if not isinstance(model, EmbeddingClient):
            return await anyio.to_thread.run_sync(model.encode, texts, limiter=self._turn)
        # Voyage embeds queries and documents differently, and has no `float` as a format.
        fields: dict[str, Any] = {"input_type": kind, "encoding_format": None}
        try:
            vectors = await model.aembed(texts, **(fields if self._is_voyage else {}))
        except EmbeddingError as error:
            raise self._failure(error) from None
        if not vectors.any(axis=1).all():
            raise self._failure(EmbeddingError("a vector has no direction", "malformed"))
        return vectors

    async def _open_model_once(self) -> TextEncoder | EmbeddingClient:
        def open_model() -> TextEncoder | EmbeddingClient:
            from standards_mcp_encoders import EmbeddingClient, open_encoder  # noqa: PLC0415  - NumPy

            settings = self._settings
            url, key = settings.embedding_service()
            if url is None:
                return open_encoder(settings.model, threads=self._threads)
            spec = (
                f"{url}#{settings.model.removeprefix(VOYAGE)}"
                if self._is_voyage
                else settings.model
            )
            return EmbeddingClient(spec, key, timeout=settings.timeout)

        async with self._opening:
            if self._model is None:
                try:
                    self._model = await anyio.to_thread.run_sync(open_model)
                except ServiceError as error:
                    raise ApiError(
                        f"The encoder {self._spec} cannot be used: {error}. Check "
                        "[plugins.memory] model."
                    ) from error
            return self._model

    def _failure(self, error: EmbeddingError) -> ApiError | TimedOutError:
        # These messages replace the error's own text, which may come from a library.
        match error.cause, error.status:
            case "timeout", _:
                return TimedOutError(
                    f"The encoder {self._spec} did not answer within {self._settings.timeout:g} s. "
                    "Try again, or set [plugins.memory] timeout."
                )
            case "unreachable", _:
                cause = "cannot be reached. Check the network and [plugins.memory] model."
            case "malformed", _:
                cause = "does not answer with a vector for each text. Check [plugins.memory] model."
            case _, 401 | 403:
                key = "embedding_api_key" + (", or VOYAGE_API_KEY" if self._is_voyage else "")
                cause = f"refuses the key ({error.status}). Check [plugins.memory] {key}."
            case _, 429:
                cause = "limits the rate of requests (429). Try again later."
            case _:
                cause = f"answered {error.status}. Check [plugins.memory] model."
        return ApiError(f"The encoder {self._spec} {cause}", status=error.status)
