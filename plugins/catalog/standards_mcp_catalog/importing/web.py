"""HTTP client for public data, with limits, retries, pauses, and a cache on disk."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Final

import httpx2

from standards_mcp import is_unencrypted
from standards_mcp.files import full_disk, private_folder, write_private
from standards_mcp_catalog.importing.report import SourceError

LARGEST_DOWNLOAD: Final = 2 * 2**30
LARGEST_ANSWER: Final = 2**27
"""Most bytes of one answer of an API; it is read into memory as a whole."""
# Files are stored as they are sent; `files` unpacks them and counts the bytes.
_HEADERS: Final = {"User-Agent": "standards-mcp", "Accept": "*/*", "Accept-Encoding": "identity"}
_MOST_REDIRECTS: Final = 10
_HINTS: Final = {400: "check the address", 401: "check the key", 403: "check the key"}
_RETRIED_STATUSES: Final = (429, 500, 502, 503, 504)
_LONGEST_PAUSE: Final = 60.0
_GRACE: Final = 60.0
_MIN_RATE: Final = 10_000
"""Bytes a second that a download must have, after the first `_GRACE` seconds."""
_LONGEST_DOWNLOAD: Final = 3_600.0  # seconds
_ATTEMPTS: Final = 4


class NotFoundOnServerError(SourceError):
    """The server has nothing at this address (404 or 410)."""


class _BusyError(SourceError):
    """The server may answer later, after *pause* seconds; 0 means that it states no time."""

    def __init__(self, message: str, pause: float = 0) -> None:
        self.pause = pause
        super().__init__(message)


@dataclass(kw_only=True, eq=False)
class Web:
    """Client that downloads addresses, through the proxies that the environment names.

    Attributes:
        secret_headers: Sent to the requested address, never to the target of a redirection. With
            them, addresses without encryption are refused, except loopback.
        timeout: Seconds for connecting and for each wait for data; then there is no retry.
        largest: Bytes after which a download is given up.
        calls_a_minute: The most requests in any minute; 0 for any number.
        cache: Holds earlier answers for `get_cached`.
        other_hosts: False to refuse redirects to another host, port or scheme.
        sleep: Waits before the next request, for a number of seconds.
        clock: Monotonic clock, in seconds.
    """

    # Known sources do not want the key again after a redirection.
    secret_headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    timeout: float = 30
    largest: int = LARGEST_DOWNLOAD
    calls_a_minute: int = 0
    cache: Cache | None = None
    other_hosts: bool = True
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    @cached_property
    def _recent(self) -> deque[float]:
        return deque(maxlen=self.calls_a_minute)

    @contextlib.contextmanager
    def download(
        self, address: str, largest: int | None = None
    ) -> Generator[IO[bytes], None, None]:
        """Download *address* completely to a temporary file, and open it.

        A request to a busy server is repeated, after the pause that the server states.

        Args:
            largest: Bytes after which the download is given up, if fewer than those of the client.

        Raises:
            NotFoundOnServerError: The server has nothing at this address.
            SourceError: The address cannot be read, or the content is too large.
        """
        largest = min(largest or self.largest, self.largest)
        with tempfile.TemporaryFile() as file:
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    self._attempt(address, file, largest)
                    break
                except _BusyError as busy:
                    if attempt == _ATTEMPTS:
                        raise
                    self.sleep(busy.pause or 2.0 ** (attempt - 1))
            file.seek(0)
            yield file

    def get_cached(self, address: str) -> bytes:
        """Return the cached content of *address*, or else the result of `get`."""
        return self.cache.get(address, self.get) if self.cache else self.get(address)

    def get(self, address: str) -> bytes:
        """Return the content of *address*; raise as `download`, also above `LARGEST_ANSWER`."""
        with self.download(address, LARGEST_ANSWER) as file:
            return file.read()

    def _attempt(self, address: str, file: IO[bytes], largest: int) -> None:
        self._wait_for_turn()
        file.seek(0)
        file.truncate()
        try:
            self._check_secrets(address)
            with self._answer(address) as answer:
                _check_status(answer)
                self._copy(answer, file, largest)
        except (httpx2.RequestError, httpx2.InvalidURL, ValueError) as error:
            raise _source_error(error, self.timeout) from None
        except OSError as error:
            reason = full_disk.reason_of(error)
            raise SourceError(f"it cannot be saved in the temporary folder: {reason}") from None

    def _wait_for_turn(self) -> None:
        if not self._recent.maxlen:
            return
        if len(self._recent) == self._recent.maxlen:
            pause = self._recent[0] + 60 - self.clock()
            if pause > 0:
                self.sleep(pause)
        self._recent.append(self.clock())

    @cached_property
    def _client(self) -> httpx2.Client:
        # Loading certificates takes a tenth of a second. No kept connections, so nothing to close.
        limits = httpx2.Limits(max_keepalive_connections=0)
        try:
            return httpx2.Client(headers=_HEADERS, timeout=self.timeout, limits=limits)
        except (ImportError, OSError, ValueError, httpx2.InvalidURL) as error:
            raise SourceError(
                f"the environment has a proxy or certificates that cannot be used ({error}); check "
                "HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE"
            ) from None

    def _check_secrets(self, address: str) -> None:
        if not self.secret_headers:
            return
        if is_unencrypted(address):
            raise SourceError("the key would be sent unencrypted; use https, or give no key")
        if not all(each.isascii() and each.isprintable() for each in self.secret_headers.values()):
            raise SourceError("the key has characters that no key has; check it")

    @contextlib.contextmanager
    def _answer(self, address: str) -> Generator[httpx2.Response, None, None]:
        """Open the answer to a request for *address*, after all redirects."""
        request = self._client.build_request("GET", address, headers=self.secret_headers)
        for _ in range(_MOST_REDIRECTS):
            # A redirect has a body, too, which the client would read to its end.
            with contextlib.closing(self._client.send(request, stream=True)) as answer:
                if answer.next_request is None:
                    yield answer
                    return
                target = answer.next_request.url
                if not self.other_hosts and _origin(target) != _origin(request.url):
                    raise SourceError(
                        f"it redirects to another host, {target.scheme}://{target.netloc.decode()}"
                    )
                request = answer.next_request
            for name in self.secret_headers:
                request.headers.pop(name, None)
        raise SourceError("it redirects too often, perhaps in a circle; check the address")

    def _copy(self, answer: httpx2.Response, file: IO[bytes], largest: int) -> None:
        began, size = self.clock(), 0
        for chunk in answer.iter_raw():
            size += len(chunk)
            if size > largest:
                raise SourceError(f"it is larger than {largest:,} bytes; ask for a part of it")
            if self.clock() - began > min(_GRACE + size / _MIN_RATE, _LONGEST_DOWNLOAD):
                raise SourceError(
                    f"it came too slowly ({size:,} bytes in {self.clock() - began:,.0f} seconds); "
                    "download it with another program, and import the file"
                )
            file.write(chunk)
        file.flush()


class Cache:
    """Answers by address in a folder, so that an interrupted import goes on where it stopped.

    Args:
        folder: Created with the first answer.
        days: Age at which an answer is requested again.
    """

    def __init__(self, folder: Path, days: float = 7) -> None:
        self._folder, self._seconds = folder, days * 86_400

    def get(self, address: str, fetch: Callable[[str], bytes]) -> bytes:
        """Return the cached answer, or else the result of *fetch*, which is then cached."""
        name = hashlib.sha256(address.encode("utf-8", "replace")).hexdigest()
        path = self._folder / name[:2] / name
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime < self._seconds:
                return path.read_bytes()
        data = fetch(address)
        with contextlib.suppress(OSError):  # a full disk must not stop an import
            private_folder(path.parent)
            temporary = path.with_name(f"{name}.{os.getpid()}.tmp")
            write_private(temporary, data)
            temporary.replace(path)
        return data


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _check_status(answer: httpx2.Response) -> None:
    status = f"the server answers {answer.status_code}"
    if answer.is_success:
        return
    if answer.status_code in (404, 410):
        raise NotFoundOnServerError(f"{status}, there is nothing; check the address")
    after = answer.headers.get("Retry-After", "")
    pause = float(after) if after.isdecimal() else 0
    hint = _HINTS.get(answer.status_code, "try again later")
    message = f"{status} {httpx2.codes.get_reason_phrase(answer.status_code)}; {hint}"
    if answer.status_code in _RETRIED_STATUSES and pause <= _LONGEST_PAUSE:
        raise _BusyError(message, pause)
    raise SourceError(message)


def _source_error(error: Exception, timeout: float) -> SourceError:
    if not isinstance(error, httpx2.RequestError) or isinstance(error, httpx2.UnsupportedProtocol):
        return SourceError(f"it is not an http address ({error}); check its spelling")
    is_slow = isinstance(error, httpx2.TimeoutException)
    reason = (
        f"no answer within {timeout:g} seconds" if is_slow else str(error) or type(error).__name__
    )
    message = (
        f"{error.request.url.host} cannot be read ({reason}); check the address, the network and "
        "HTTPS_PROXY"
    )
    is_broken = isinstance(error, (httpx2.ReadError, httpx2.RemoteProtocolError))
    return (_BusyError if is_broken else SourceError)(message)
