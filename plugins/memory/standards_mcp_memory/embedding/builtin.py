"""Encoders in this process, as the catalog opens them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from typing_extensions import override

from standards_mcp import ApiError, ServiceError
from standards_mcp_memory.process_memory import return_memory
from standards_mcp_memory.records import Vectors

from .base import Encoder, Kind

if TYPE_CHECKING:
    from standards_mcp_encoders import TextEncoder


class BuiltInEncoder(Encoder):
    """An encoder of the catalog.

    Args:
        spec: As the catalog names it.
        threads: How many the one that comes with the host uses; None: one for each processor.
    """

    def __init__(self, spec: str, threads: int | None = None) -> None:
        self._spec, self._threads = spec, threads
        self._opening = anyio.Lock()
        # It takes memory for each text that it has at a time.
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
                    self._encoder = await anyio.to_thread.run_sync(_open, self._spec, self._threads)
                except ServiceError as error:
                    raise ApiError(
                        f"The encoder {self._spec} cannot be used: {error}. Check "
                        "[plugins.memory] model."
                    ) from error
            return self._encoder


def _open(spec: str, threads: int | None) -> TextEncoder:
    from standards_mcp_encoders import open_encoder  # noqa: PLC0415  - takes long

    encoder = open_encoder(spec, threads=threads)
    return_memory()
    return encoder
