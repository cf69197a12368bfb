"""Connections to Pinecone: opened late, a session for each event loop, a deadline for each call.

The timeout of the SDK applies to each of its attempts, so only a deadline around the whole call
limits its duration.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import urllib.request
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from anyio import CapacityLimiter, to_thread

from standards_mcp.errors import ConfigError
from standards_mcp_catalog.settings import PineconeCatalogSettings, checked_host

from .failures import PineconeUnavailableError, translated

if TYPE_CHECKING:
    from pinecone import AsyncIndex, AsyncPinecone, RetryConfig

log = logging.getLogger(__name__)

CONTROLLER_HOST: Final = "https://api.pinecone.io"
CONCURRENCY: Final = 8
"""Most calls at a time; further calls wait."""
_T = TypeVar("_T")


@dataclass(slots=True)
class Session:
    """The clients and locks of one event loop."""

    metadata_calls: asyncio.Semaphore
    calls: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CONCURRENCY))
    building: asyncio.Lock = field(default_factory=asyncio.Lock)
    sampling: asyncio.Lock = field(default_factory=asyncio.Lock)
    control: AsyncPinecone | None = None
    index: AsyncIndex | None = None


class Connections:
    """The sessions of one `PineconeClient`; only this class uses the API key."""

    metadata_rate = 5
    """Fetches by metadata in a second that Pinecone allows for one namespace."""

    def __init__(self, settings: PineconeCatalogSettings) -> None:
        if settings.api_key is None:
            raise ConfigError(
                "Pinecone needs a key; set PINECONE_API_KEY in the environment or .env"
            )
        self._key = settings.api_key
        self.index_name = settings.index_name
        self.host = settings.host
        self.deadline = settings.deadline
        self._controller = checked_host(
            os.environ.get("PINECONE_CONTROLLER_HOST") or CONTROLLER_HOST
        )
        self._sessions: dict[asyncio.AbstractEventLoop, Session] = {}

    @property
    def session(self) -> Session:
        """The session of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            for ended in [each for each in list(self._sessions) if each.is_closed()]:
                self._sessions.pop(ended, None)  # its sockets cannot be closed from here
            self._sessions[loop] = Session(asyncio.Semaphore(self.metadata_rate))
        return self._sessions[loop]

    @asynccontextmanager
    async def index(self) -> AsyncGenerator[AsyncIndex]:
        """Yield the client of the index, apply the deadline to the block, and translate errors.

        Raises:
            PineconeUnavailableError: The block or the connection failed or took too long.
        """
        async with self._call() as session:
            async with session.building:
                if session.index is None:
                    host = self.host or await self._look_up_host(session)
                    session.index = await _in_thread(lambda: self._build_index(host))
            yield session.index

    @asynccontextmanager
    async def control(self) -> AsyncGenerator[AsyncPinecone]:
        """Yield the client of the control plane, like `index`."""
        async with self._call(is_control=True) as session:
            yield await self._control_client(session)

    async def aclose(self) -> None:
        """Close the clients of the running event loop. A later call opens new ones."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        for client in (session.index, session.control) if session else ():
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
            cause = TimeoutError() if deadline.expired() else error
            if not _is_external(cause):
                raise
            index_host = session.index.host if session.index else self.host
            host = urlsplit(self._controller if is_control or not index_host else index_host).netloc
            secrets = (self._key.get_secret_value(), *proxy_passwords())
            raise translated(
                cause, index=self.index_name, host=host, deadline=self.deadline, secrets=secrets
            ) from None

    async def _look_up_host(self, session: Session) -> str:
        control = await self._control_client(session)
        index = await control.indexes.describe(self.index_name)
        if not index.host:
            raise PineconeUnavailableError(
                "server",
                f"The Pinecone index {self.index_name!r} is still being made. Try again in a "
                "minute.",
            )
        try:
            return checked_host(index.host)
        except ValueError as error:
            raise PineconeUnavailableError(
                "malformed", f"Pinecone names a host that cannot be used: {error}."
            ) from None

    async def _control_client(self, session: Session) -> AsyncPinecone:
        if session.control is None:
            session.control = await _in_thread(self._build_control)
        return session.control

    def _build_control(self) -> AsyncPinecone:
        from pinecone import AsyncPinecone  # noqa: PLC0415  0.5 seconds, in a worker thread

        options = self._options(self._controller)
        return AsyncPinecone(host=self._controller, retry_config=_retries(), **options)

    def _build_index(self, host: str) -> AsyncIndex:
        from pinecone import AsyncIndex  # noqa: PLC0415  0.5 seconds, in a worker thread

        return _with_retry_config(AsyncIndex(host=host, **self._options(host)))

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
            # A look-up that hangs does not stop the program from ending, because this thread can be
            # abandoned. In the threads of the event loop, it would.
            parts = urlsplit(host)
            socket.getaddrinfo(parts.hostname, parts.port, type=socket.SOCK_STREAM)
        return {
            "api_key": key,
            # Short enough for a second attempt within the deadline.
            "timeout": max(0.5, self.deadline / 2),
            "proxy_url": proxy,
            "source_tag": "standards_mcp",
        }


async def _in_thread(build: Callable[[], _T]) -> _T:
    """Build a client in a thread of its own, outside the default limit of threads."""
    return await to_thread.run_sync(build, abandon_on_cancel=True, limiter=CapacityLimiter(1))


def _retries() -> RetryConfig:
    """Return the retries of the SDK: never for a quota, which the caller must handle."""
    from pinecone import RetryConfig  # noqa: PLC0415  loaded by the caller

    return RetryConfig(
        max_retries=2,
        backoff_factor=0.1,
        max_wait=1.0,
        retryable_status_codes=frozenset({408, 500, 502, 503, 504}),
    )


def _with_retry_config(index: AsyncIndex) -> AsyncIndex:
    """Return *index* with `_retries`; SDK 10.2 has no public option for them.

    By default the SDK waits after a 429, for as long as the service says and up to 270 seconds,
    although a search could go on without the reranker. A test fails if the SDK changes.
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
    """Return True if *error* comes from the SDK or the network, and not from our code."""
    module = type(error).__module__.partition(".")[0]
    is_of_sdk = module in ("pinecone", "httpx", "httpcore", "ssl")
    return is_of_sdk or isinstance(error, OSError | ImportError)


def proxy_for(host: str) -> str | None:
    """Return the proxy that the environment names for *host*, or None.

    This reads ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, in upper or lower
    case, and the system settings on Windows and macOS. The SDK reads none of them.
    """
    parts = urlsplit(host)
    if any(map(urllib.request.proxy_bypass, (parts.netloc, parts.hostname or ""))):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def proxy_passwords() -> tuple[str, ...]:
    """Return the passwords of proxies in the environment, to keep them out of messages."""
    passwords = (urlsplit(proxy).password for proxy in urllib.request.getproxies().values())
    return tuple(filter(None, passwords))
