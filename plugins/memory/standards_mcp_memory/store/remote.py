"""A store on a Qdrant server."""

from __future__ import annotations

import asyncio
import math
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import anyio
from pydantic import SecretStr
from typing_extensions import override

from standards_mcp import ApiError, may_use_proxy

from . import Store

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

_THREADS: Final = 16
_DENIED: Final = (401, 403)


class RemoteStore(Store):
    """A Qdrant server. The first call opens the client."""

    def __init__(self, url: str, key: SecretStr | None, timeout: float) -> None:
        super().__init__(f"The memory store at {url}", timeout, _THREADS)
        self._url, self._key = url, key
        self._opening = anyio.Lock()

    @override
    async def aclose(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            await asyncio.to_thread(self._client.close)

    @override
    async def _open(self) -> None:
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._connect)

    def _connect(self) -> QdrantClient:
        from qdrant_client import QdrantClient  # noqa: PLC0415  - takes seconds

        # The settings refuse an unencrypted key, except for this machine.
        warnings.filterwarnings("ignore", "Api key is used with an insecure", UserWarning)
        return QdrantClient(
            url=self._url,
            api_key=self._key.get_secret_value() if self._key else None,
            timeout=math.ceil(self._timeout),
            check_compatibility=False,
            trust_env=may_use_proxy(self._url),
        )

    @override
    @contextmanager
    def _translated(self) -> Generator[None]:
        import httpx  # noqa: PLC0415  - as the client
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse  # noqa: PLC0415
        from qdrant_client.http.exceptions import (  # noqa: PLC0415
            ResponseHandlingException,
            UnexpectedResponse,
        )

        try:
            yield
        except ResourceExhaustedResponse as error:
            cause = f"{self.name} limits the rate of requests."
            raise ApiError(cause, retry_after=error.retry_after_s) from None
        except UnexpectedResponse as error:
            status = error.status_code or 0
            cause = f"answered {status}. Check [plugins.memory] url, and the server's log."
            if status in _DENIED:
                cause = f"refuses the key ({status}). Check [plugins.memory] api_key."
            raise ApiError(f"{self.name} {cause}", status=status) from None
        except (ResponseHandlingException, ValueError, AssertionError, RecursionError) as error:
            source = error.source if isinstance(error, ResponseHandlingException) else error
            if isinstance(source, httpx.TimeoutException):
                raise TimeoutError from None  # `run` has the message
            # The other errors are from invalid answers.
            cause = "does not answer as Qdrant does. Check [plugins.memory] url."
            if isinstance(source, httpx.TransportError):
                cause = (
                    f"cannot be reached ({type(source).__name__}). Check [plugins.memory] url, and "
                    "whether the server runs."
                )
            raise ApiError(f"{self.name} {cause}") from None
