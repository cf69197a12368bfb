"""A store on a Qdrant server."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.to_thread
from pydantic import SecretStr
from typing_extensions import override

from standards_mcp import ApiError, TimedOutError, may_use_proxy

from . import Job, Store

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

T = TypeVar("T")
_THREADS: Final = 16
_MOST_THREADS: Final = 2 * _THREADS
_DENIED: Final = (401, 403)


class RemoteStore(Store):
    """A Qdrant server. The first call opens the client."""

    def __init__(self, url: str, key: SecretStr | None, timeout: float) -> None:
        self.place = url
        self._key, self._timeout = key, timeout
        self._opening = anyio.Lock()
        self._threads = anyio.CapacityLimiter(_THREADS)
        self._slots = threading.Semaphore(_MOST_THREADS)
        self._client: QdrantClient | None = None

    @override
    async def run(self, job: Job[T]) -> T:
        client = await self._opened()
        try:
            with anyio.fail_after(self._timeout):
                return await anyio.to_thread.run_sync(
                    self._run, job, client, abandon_on_cancel=True, limiter=self._threads
                )
        except TimeoutError:
            raise self._late() from None

    @override
    async def aclose(self) -> None:
        if self._client is not None:
            await anyio.to_thread.run_sync(self._client.close)

    async def _opened(self) -> QdrantClient:
        async with self._opening:
            if self._client is None:
                self._client = await anyio.to_thread.run_sync(self._open)
            return self._client

    def _open(self) -> QdrantClient:
        from qdrant_client import QdrantClient  # noqa: PLC0415  - takes seconds

        # The settings refuse an unencrypted key, except for this machine.
        warnings.filterwarnings("ignore", "Api key is used with an insecure", UserWarning)
        return QdrantClient(
            url=self.place,
            api_key=self._key.get_secret_value() if self._key else None,
            timeout=math.ceil(self._timeout),
            check_compatibility=False,
            trust_env=may_use_proxy(self.place),
        )

    def _run(self, job: Job[T], client: QdrantClient) -> T:
        # An abandoned thread keeps its slot until it ends, unlike in the limiter: a server that
        # sends a byte now and then could otherwise collect threads without limit.
        if not self._slots.acquire(blocking=False):
            raise ApiError(
                f"The memory store at {self.place} does not end {_MOST_THREADS} requests. "
                "Check [plugins.memory] url, and the server."
            )
        try:
            with self._translated():
                return job(client)
        finally:
            self._slots.release()

    @contextmanager
    def _translated(self) -> Generator[None]:
        """Convert the errors of the client for users."""
        import httpx  # noqa: PLC0415  - as the client
        from qdrant_client.common.client_exceptions import ResourceExhaustedResponse  # noqa: PLC0415
        from qdrant_client.http.exceptions import (  # noqa: PLC0415
            ResponseHandlingException,
            UnexpectedResponse,
        )

        try:
            yield
        except ResourceExhaustedResponse as error:
            raise ApiError(
                f"The memory store at {self.place} limits the rate of requests.",
                retry_after=error.retry_after_s,
            ) from None
        except UnexpectedResponse as error:
            raise self._refusal(error.status_code or 0) from None
        except ResponseHandlingException as error:
            if isinstance(error.source, httpx.TimeoutException):
                raise self._late() from None
            raise self._unreachable(error.source) from None
        except (ValueError, AssertionError, RecursionError) as error:  # from invalid answers
            raise self._unreachable(error) from None

    def _refusal(self, status: int) -> ApiError:
        if status in _DENIED:
            cause = f"refuses the key ({status}). Check [plugins.memory] api_key."
        else:
            cause = f"answered {status}. Check [plugins.memory] url, and the server's log."
        return ApiError(f"The memory store at {self.place} {cause}", status=status)

    def _unreachable(self, cause: Exception) -> ApiError:
        import httpx  # noqa: PLC0415  - as the client

        if isinstance(cause, httpx.TransportError):
            return ApiError(
                f"The memory store at {self.place} cannot be reached ({type(cause).__name__}). "
                "Check [plugins.memory] url, and whether the server runs."
            )
        return ApiError(
            f"The memory store at {self.place} does not answer as Qdrant does. Check "
            "[plugins.memory] url."
        )

    def _late(self) -> TimedOutError:
        return TimedOutError(
            f"The memory store at {self.place} did not answer within {self._timeout:g} s. Try "
            "again, or set [plugins.memory] timeout."
        )
