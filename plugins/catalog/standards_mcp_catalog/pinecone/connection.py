"""Connections to Pinecone: built late, one for each event loop, every call under a deadline.

The SDK's own timeout counts for one attempt, and it makes several attempts, so that only a deadline
around the whole call bounds it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
import urllib.request
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from anyio import CapacityLimiter, to_thread
from pydantic import SecretStr

from standards_mcp import is_loopback, is_unencrypted

from .failures import PineconeUnavailableError, timed_out, translated

if TYPE_CHECKING:
    from pinecone import AsyncIndex, AsyncPinecone, IndexModel, RetryConfig

log = logging.getLogger(__name__)

CONTROLLER_HOST: Final = "https://api.pinecone.io"
SOURCE_TAG: Final = "standards_mcp"
_SHORTEST_ATTEMPT: Final = 0.5
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Limits and pauses of a client; the defaults follow the limits of the service.

    https://docs.pinecone.io/reference/api/database-limits has those limits.

    Attributes:
        controller_host: The control plane; by default ``PINECONE_CONTROLLER_HOST``, else the
            public one.
        concurrency: The greatest number of calls at a time; further ones wait.
        metadata_rate: Fetches by metadata in a second, for one namespace.
        write_pauses: Seconds to wait before each new attempt of a write that the quota of the
            minute refused; the first two also count for a connection that was lost at work.
        facets_lifetime: Seconds before the subjects and levels of the index are read again.
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
    """The connections of one event loop."""

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
                    del self._sessions[ended]  # its sockets cannot be closed from here
                self._sessions[loop] = Session(
                    asyncio.Semaphore(self.tuning.concurrency),
                    RateWindow(self.tuning.metadata_rate),
                )
            return self._sessions[loop]

    @asynccontextmanager
    async def index(self) -> AsyncGenerator[AsyncIndex]:
        """Lend the client of the index, under the deadline and with translated errors.

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


def _with_our_retries(index: AsyncIndex) -> AsyncIndex:
    """Return *index* with `_retries`; SDK 10.2 has no public option for them.

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
    """Return True if *error* comes from the SDK or the network, and not from our code."""
    module = type(error).__module__.partition(".")[0]
    return module in ("pinecone", "httpx", "httpcore", "ssl") or isinstance(
        error, OSError | ImportError
    )


def checked_host(host: str) -> str:
    """Return *host* with its scheme: https unless it says http, which loopback alone may.

    Raises:
        ValueError: The key would be sent unencrypted, or *host* is not a host.
    """
    url = host.strip().removesuffix("/")
    url = url if "://" in url else f"https://{url}"
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError("a host has no user name and no password in it; leave them out")
    is_host = "." in (parts.hostname or "") or is_loopback(parts.hostname or "")
    if parts.scheme not in ("http", "https") or not is_host or parts.path or parts.query:
        raise ValueError(
            f"{host!r} is not a host; give the one that Pinecone's console shows for the index, "
            "such as my-index-abc123.svc.aped-1234.pinecone.io"
        )
    if is_unencrypted(url):
        raise ValueError(f"{host!r}: the key would be sent unencrypted; use https")
    return url


def look_up(host: str) -> None:
    """Look up the name of *host* in the calling thread, which may be left behind when that hangs.

    A look-up that an event loop makes cannot: the program would not end before it does.

    Raises:
        OSError: No server is known by this name.
    """
    parts = urlsplit(host)
    socket.getaddrinfo(parts.hostname, parts.port, type=socket.SOCK_STREAM)


def proxy_for(host: str) -> str | None:
    """Return the proxy that the environment names for *host*, or None.

    ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` are read, in either case, and
    the settings of the system on Windows and macOS. The SDK itself reads none of them.
    """
    parts = urlsplit(host)
    if urllib.request.proxy_bypass(parts.netloc) or urllib.request.proxy_bypass(
        parts.hostname or ""
    ):
        return None
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


def proxy_passwords() -> tuple[str, ...]:
    """Return the passwords in the proxies of the environment, for keeping them out of messages."""
    found = (urlsplit(proxy).password for proxy in urllib.request.getproxies().values())
    return tuple(password for password in found if password)
