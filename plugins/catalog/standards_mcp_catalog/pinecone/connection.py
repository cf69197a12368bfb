"""Connections to Pinecone: built late, one for each event loop, every call under a deadline.

The SDK's own timeout counts for one attempt, of which it makes several, so that only a deadline
around the whole call bounds it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from anyio import CapacityLimiter, to_thread
from pydantic import SecretStr

from .errors import PineconeUnavailableError, timed_out, translated
from .hosts import checked_host, look_up, proxy_for, proxy_passwords

if TYPE_CHECKING:
    from pinecone import AsyncIndex, AsyncPinecone, IndexModel, RetryConfig

log = logging.getLogger(__name__)

CONTROLLER_HOST: Final = "https://api.pinecone.io"
SOURCE_TAG: Final = "standards_mcp"
_SHORTEST_ATTEMPT: Final = 0.5
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """How a client of Pinecone behaves; the defaults follow the limits of the service.

    https://docs.pinecone.io/reference/api/database-limits has those limits.

    Attributes:
        controller_host: The control plane; by default ``PINECONE_CONTROLLER_HOST``, else the
            public one.
        concurrency: The greatest number of calls at a time; further ones wait.
        metadata_rate: Fetches by metadata in a second, for one namespace.
        write_pauses: Seconds to wait before each new attempt of a write that the quota of the
            minute refused; the first two also count for a connection that was lost at work.
        facets_lifetime: Seconds for which the subjects and levels of the index are remembered.
    """

    controller_host: str | None = None
    concurrency: int = 8
    metadata_rate: int = 5
    write_pauses: tuple[float, ...] = (10, 20, 40, 60, 60)
    facets_lifetime: float = 3600


class RateWindow:
    """Lets *count* calls through in any *seconds*, in order of arrival.

    The default is more than a second, because calls do not all travel equally fast.
    """

    def __init__(self, count: int, seconds: float = 1.1) -> None:
        self._starts: deque[float] = deque(maxlen=count)
        self._seconds = seconds
        self._lock = asyncio.Lock()

    async def wait(self) -> None:
        """Return when one more call may start."""
        async with self._lock:
            if len(self._starts) == self._starts.maxlen:
                await asyncio.sleep(self._starts[0] + self._seconds - time.monotonic())
            self._starts.append(time.monotonic())


@dataclass(slots=True)
class Session:
    """What belongs to one event loop."""

    calls: asyncio.Semaphore
    metadata_calls: RateWindow
    building: asyncio.Lock = field(default_factory=asyncio.Lock)
    facets: asyncio.Lock = field(default_factory=asyncio.Lock)
    control: AsyncPinecone | None = None
    index: AsyncIndex | None = None
    model: IndexModel | None = None


class Connections:
    """The sessions of one client of Pinecone, and the only place that knows its key.

    Args:
        api_key: Whitespace around it is ignored, since keys are read from files.
        host: The host of the index, see `checked_host`; None asks the control plane for it.
        deadline: Seconds for one call, with all that it waits for.

    Raises:
        ValueError: The host is wrong.
    """

    def __init__(
        self,
        api_key: SecretStr | str,
        *,
        index_name: str,
        host: str | None,
        deadline: float,
        tuning: Tuning,
    ) -> None:
        text = api_key if isinstance(api_key, str) else api_key.get_secret_value()
        self._key = SecretStr(text.strip())
        self.index_name = index_name
        self.host = checked_host(host) if host else None
        self.deadline = deadline
        self.tuning = tuning
        controller = tuning.controller_host or os.environ.get("PINECONE_CONTROLLER_HOST")
        self._controller = checked_host(controller) if controller else CONTROLLER_HOST
        self._lock = threading.Lock()
        self._sessions: dict[asyncio.AbstractEventLoop, Session] = {}

    @property
    def session(self) -> Session:
        """The session of the running event loop."""
        with self._lock:
            loop = asyncio.get_running_loop()
            if loop not in self._sessions:
                for ended in [each for each in self._sessions if each.is_closed()]:
                    del self._sessions[ended]  # nothing can close its sockets any more
                self._sessions[loop] = Session(
                    asyncio.Semaphore(self.tuning.concurrency),
                    RateWindow(self.tuning.metadata_rate),
                )
            return self._sessions[loop]

    @asynccontextmanager
    async def index(self) -> AsyncGenerator[AsyncIndex]:
        """Lend the client of the index, under the deadline and in words of our own for errors.

        Raises:
            PineconeUnavailableError: The body, or connecting, failed or took too long.
        """
        async with self._call() as session:
            yield await self._opened(session)

    @asynccontextmanager
    async def control(self) -> AsyncGenerator[AsyncPinecone]:
        """Lend the client of the control plane, like `index`."""
        async with self._call(is_control=True) as session:
            async with session.building:
                control = await self._built_control(session)
            yield control

    async def aclose(self) -> None:
        """Close the clients of the running event loop. A later call opens new ones."""
        with self._lock:
            session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            for client in (session.index, session.control):
                if client is not None:
                    await client.close()

    @asynccontextmanager
    async def _call(self, *, is_control: bool = False) -> AsyncGenerator[Session]:
        session = self.session
        deadline = asyncio.timeout(self.deadline)
        try:
            async with deadline, session.calls:
                yield session
        except PineconeUnavailableError:
            raise
        except Exception as error:
            host = self._host_of(is_control=is_control)
            if deadline.expired():
                raise timed_out(host, self.deadline) from None
            if _is_external(error):
                secrets = (self._key.get_secret_value(), *proxy_passwords())
                raise translated(
                    error,
                    index=self.index_name,
                    host=host,
                    deadline=self.deadline,
                    secrets=secrets,
                ) from None
            raise

    async def _opened(self, session: Session) -> AsyncIndex:
        async with session.building:
            if session.index is None:
                host = self.host or await self._described_host(session)
                session.index = await _in_thread(lambda: self._build_index(host))
            return session.index

    async def _described_host(self, session: Session) -> str:
        control = await self._built_control(session)
        session.model = await control.indexes.describe(self.index_name)
        if not session.model.host:
            raise PineconeUnavailableError(
                "server",
                f"The Pinecone index {self.index_name!r} is still being made. Try again in a "
                "minute.",
            )
        try:
            return checked_host(session.model.host)
        except ValueError as error:
            raise PineconeUnavailableError(
                "malformed", f"Pinecone names a host that cannot be used: {error}."
            ) from None

    async def _built_control(self, session: Session) -> AsyncPinecone:
        if session.control is None:
            session.control = await _in_thread(self._build_control)
        return session.control

    def _build_control(self) -> AsyncPinecone:
        from pinecone import AsyncPinecone  # noqa: PLC0415  0.5 seconds, in a worker thread

        options = self._options(self._controller)
        return AsyncPinecone(host=self._controller, retry_config=_retries(), **options)

    def _build_index(self, host: str) -> AsyncIndex:
        from pinecone import AsyncIndex  # noqa: PLC0415  0.5 seconds, in a worker thread

        return _with_our_retries(AsyncIndex(host=host, **self._options(host)))

    def _options(self, host: str) -> Mapping[str, Any]:
        key = self._key.get_secret_value()
        if not (key.isascii() and key.isprintable()):
            raise PineconeUnavailableError(
                "key",
                "The Pinecone API key holds a character that no key has, such as a line break. "
                "Copy it into PINECONE_API_KEY again.",
            )
        proxy = proxy_for(host)
        if proxy is None:
            look_up(host)
        return {
            "api_key": key,
            # One attempt is short enough for a second one within the deadline.
            "timeout": max(_SHORTEST_ATTEMPT, self.deadline / 2),
            "proxy_url": proxy,
            "source_tag": SOURCE_TAG,
        }

    def _host_of(self, *, is_control: bool) -> str:
        index = self.session.index
        known = self.host if index is None else index.host
        return urlsplit(self._controller if is_control or not known else known).netloc


async def _in_thread(build: Callable[[], _T]) -> _T:
    """Build a client, whoever else holds the default number of threads."""
    return await to_thread.run_sync(build, abandon_on_cancel=True, limiter=CapacityLimiter(1))


def _retries() -> RetryConfig:
    """Return which failures the SDK tries again: never a quota, of which the caller must hear."""
    from pinecone import RetryConfig  # noqa: PLC0415  loaded by the caller

    return RetryConfig(
        max_retries=2,
        backoff_factor=0.1,
        max_wait=1.0,
        retryable_status_codes=frozenset({408, 500, 502, 503, 504}),
    )


def _with_our_retries(index: AsyncIndex) -> AsyncIndex:
    """Return *index* with `_retries`, for which SDK 10.2 has no public way.

    Left alone it would sleep through a 429, for as long as the service says and up to 270
    seconds, while a search could go on without the reranker. A test notices when an SDK changes.
    """
    try:
        from pinecone._internal.constants import DATA_PLANE_API_VERSION  # noqa: PLC0415
        from pinecone._internal.http_client import AsyncHTTPClient  # noqa: PLC0415

        config = replace(index._config, retry_config=_retries())  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        index._http = AsyncHTTPClient(config, DATA_PLANE_API_VERSION)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    except (ImportError, AttributeError, TypeError):
        log.warning("this version of the Pinecone SDK retries in its own way")
    return index


def _is_external(error: Exception) -> bool:
    """Return whether *error* comes from the SDK or the network, and is no mistake of ours."""
    module = type(error).__module__.partition(".")[0]
    return module in ("pinecone", "httpx", "httpcore", "ssl") or isinstance(
        error, OSError | ImportError
    )
