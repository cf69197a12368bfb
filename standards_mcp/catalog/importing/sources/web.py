"""HTTP for reading public data: bounded, patient, polite to the server, and kept on disk."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import socket
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import IO, Final
from urllib.parse import urlsplit

from standards_mcp._utils.addresses import is_unencrypted
from standards_mcp._utils.private import private_folder, write_private
from standards_mcp.catalog.importing.problems import SourceError

LARGEST_DOWNLOAD: Final = 2 * 2**30
LARGEST_ANSWER: Final = 2**27
"""How many bytes of one answer of an API are read into memory."""
_CHUNK: Final = 2**16
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_HINTS: Final = {400: "check the address", 401: "check the key", 403: "check the key"}
_RETRIED: Final = (429, 500, 502, 503, 504)
_LONGEST_PAUSE: Final = 60.0
_GRACE: Final = 60.0
_SLOWEST: Final = 10_000
"""Bytes a second that a download must have, once `_GRACE` seconds are over."""
_LONGEST: Final = 3_600.0  # seconds
_ATTEMPTS: Final = 4
_FINAL: Final = (TimeoutError, ValueError, http.client.InvalidURL, socket.gaierror)
_WHAT: Final[tuple[tuple[type[Exception], str], ...]] = (
    (socket.gaierror, "is a name that no server is known by"),
    (TimeoutError, "did not answer within {seconds:g} seconds"),
    (ssl.SSLError, "has no secure connection ({cause})"),
    (ConnectionRefusedError, "takes no connections"),
    (ConnectionError, "broke the connection off"),
    (http.client.HTTPException, "broke its answer off"),
)


class NotFoundOnServerError(SourceError):
    """The server has nothing at this address (404 or 410)."""


class RateLimit:
    """At most *calls* in any *seconds*.

    Args:
        clock: Seconds that only grow.
        sleep: Waits for seconds.
    """

    def __init__(
        self,
        calls: int,
        seconds: float = 60,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._recent: deque[float] = deque(maxlen=calls)
        self._seconds, self._clock, self._sleep = seconds, clock, sleep

    def wait(self) -> None:
        """Return as soon as another call is allowed."""
        if len(self._recent) == self._recent.maxlen:
            pause = self._recent[0] + self._seconds - self._clock()
            if pause > 0:
                self._sleep(pause)
        self._recent.append(self._clock())


class Web:
    """Reads addresses. Proxies are taken from the environment, as the standard library does.

    It needs nothing but that library: an HTTP client was tried and was hardly shorter, took a tenth
    of a second for each new object, and brought certificates and redirect rules of its own.

    Args:
        secret_headers: Sent to the address that is asked, and to none that it redirects to; an
            address that is not encrypted is not read at all, unless it is loopback.
        timeout: Seconds for connecting and for each wait for data; not tried again.
        largest: Bytes after which a download is given up.
        limit: Waited for before each request.
        sleep: Waits for seconds, before a request is tried again.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        *,
        secret_headers: Mapping[str, str] | None = None,
        timeout: float = 30,
        largest: int = LARGEST_DOWNLOAD,
        limit: RateLimit | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._headers = {"User-Agent": "standards-mcp", "Accept": "*/*"}
        self._secret_headers = dict(secret_headers or {})
        self._opener = urllib.request.build_opener()
        self._timeout, self._largest = timeout, largest
        self._limit, self._sleep, self._clock = limit, sleep, clock

    @contextlib.contextmanager
    def download(
        self, address: str, largest: int | None = None
    ) -> Generator[IO[bytes], None, None]:
        """Open the content of *address*, read to the end, in a temporary file.

        Busy servers are asked again, after the pause that they ask for.

        Args:
            largest: Bytes after which it is given up, if these are fewer than usual.

        Raises:
            NotFoundOnServerError: There is nothing.
            SourceError: It is no http address, or cannot be read, or is too large.
        """
        largest = min(largest or self._largest, self._largest)
        with tempfile.TemporaryFile() as file:
            for attempt in range(1, _ATTEMPTS + 1):
                pause = self._try(address, file, largest, is_last=attempt == _ATTEMPTS)
                if pause is None:
                    break
                self._sleep(pause or 2.0 ** (attempt - 1))
            file.seek(0)
            yield file

    def get(self, address: str) -> bytes:
        """Return the content of *address*, `LARGEST_ANSWER` at most; raises as `download` does."""
        with self.download(address, LARGEST_ANSWER) as file:
            return file.read()

    def _try(self, address: str, file: IO[bytes], largest: int, *, is_last: bool) -> float | None:
        """Read *address* into *file*; return the pause before trying again, or None when done."""
        if not is_address(address):
            raise SourceError("it is no http address")
        if self._limit is not None:
            self._limit.wait()
        file.seek(0)
        file.truncate()
        try:
            request = urllib.request.Request(address, headers=self._headers)  # noqa: S310  checked
            self._add_secrets(request)
            with self._opener.open(request, timeout=self._timeout) as answer:
                self._copy(answer, file, largest)
        except urllib.error.HTTPError as error:
            with error:
                return _pause(error, is_last=is_last)
        except (OSError, http.client.HTTPException, ValueError) as error:
            cause = _cause(error)
            if is_last or isinstance(cause, _FINAL):
                raise SourceError(_reason(cause, address, self._timeout)) from None
            return 0
        return None

    def _add_secrets(self, request: urllib.request.Request) -> None:
        if self._secret_headers and is_unencrypted(request.full_url):
            raise SourceError("the key would be sent unencrypted; use https, or give no key")
        for name, value in self._secret_headers.items():
            request.add_unredirected_header(name, value)

    def _copy(self, answer: http.client.HTTPResponse, file: IO[bytes], largest: int) -> None:
        began, size = self._clock(), 0
        while chunk := answer.read1(_CHUNK):  # what there is: `read` would wait for all of it
            size += len(chunk)
            if size > largest:
                raise SourceError(f"it is larger than {largest:,} bytes; ask for a part of it")
            if self._clock() - began > min(_GRACE + size / _SLOWEST, _LONGEST):
                raise SourceError(
                    f"it came too slowly ({size:,} bytes in {self._clock() - began:,.0f} seconds); "
                    "download it with another program, and import the file"
                )
            file.write(chunk)
        if answer.length:
            raise http.client.IncompleteRead(b"", answer.length)


class Cache:
    """Answers by address in a folder, so that an interrupted download goes on where it stopped.

    Args:
        folder: Made when something is kept.
        days: How long an answer is used.
    """

    def __init__(self, folder: Path, days: float = 7) -> None:
        self._folder, self._seconds = folder, days * 86_400

    def reader(self, web: Web) -> Callable[[str], bytes]:
        """Return what reads an address from here, and from *web* where it is not here."""
        return lambda address: self.get(address, web.get)

    def get(self, address: str, fetch: Callable[[str], bytes]) -> bytes:
        """Return the kept answer, or the one of *fetch*, which is then kept."""
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


def is_address(source: str) -> bool:
    """Return whether *source* is an http or https address."""
    return source.casefold().startswith(("http://", "https://"))


def _pause(error: urllib.error.HTTPError, *, is_last: bool) -> float:
    """Return the pause that a busy server asks for, or 0 where it does not say.

    Raises:
        SourceError: Another request would be answered alike.
    """
    status = f"the server answers {error.code}"
    if error.code in (404, 410):
        raise NotFoundOnServerError(f"{status}, there is nothing; check the address")
    if error.code in _REDIRECTS:
        raise SourceError(f"{status} and leads in a circle, or to what is no web address")
    after = error.headers.get("Retry-After", "")
    pause = float(after) if after.isdecimal() else 0
    if is_last or error.code not in _RETRIED or pause > _LONGEST_PAUSE:
        hint = _HINTS.get(error.code, "try again later")
        raise SourceError(f"{status} {http.client.responses.get(error.code, '')}; {hint}")
    return pause


def _cause(error: Exception) -> Exception:
    inner = getattr(error, "reason", None)
    return inner if isinstance(inner, Exception) else error


def _reason(cause: Exception, address: str, timeout: float) -> str:
    if isinstance(cause, (ValueError, http.client.InvalidURL)):
        return "it is no address that can be read; check its spelling"
    what = next(
        (text for kind, text in _WHAT if isinstance(cause, kind)), "is out of reach ({cause})"
    )
    told = getattr(cause, "verify_message", None) or getattr(cause, "strerror", None) or cause
    what = what.format(seconds=timeout, cause=" ".join(str(told).split()))
    host = urlsplit(address).hostname
    return f"{host} {what}; check the address, the network and HTTPS_PROXY"
