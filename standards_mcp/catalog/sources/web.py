"""HTTP for reading public data: bounded, patient, polite to the server, and kept on disk."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import tempfile
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import IO, Final

from .problems import SourceError

LARGEST_DOWNLOAD: Final = 2 * 2**30
_CHUNK: Final = 2**16
_RETRIED: Final = (429, 500, 502, 503, 504)
_LONGEST_PAUSE: Final = 60.0
_ATTEMPTS: Final = 4


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

    Args:
        headers: Sent with every request.
        timeout: Seconds for connecting and for each wait for data.
        largest: Bytes after which a download is given up.
        limit: Waited for before each request.
        sleep: Waits for seconds, before a request is tried again.
    """

    def __init__(
        self,
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60,
        largest: int = LARGEST_DOWNLOAD,
        limit: RateLimit | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._headers = {"User-Agent": "standards-mcp", "Accept": "*/*"} | dict(headers or {})
        self._timeout, self._largest = timeout, largest
        self._limit, self._sleep = limit, sleep

    @contextlib.contextmanager
    def download(self, address: str) -> Generator[IO[bytes], None, None]:
        """Open the content of *address*, read to the end, in a temporary file.

        Busy servers are asked again, after the pause that they ask for.

        Raises:
            NotFoundOnServerError: There is nothing.
            SourceError: It is no http address, or cannot be read, or is too large.
        """
        with tempfile.TemporaryFile() as file:
            for attempt in range(1, _ATTEMPTS + 1):
                pause = self._try(address, file, is_last=attempt == _ATTEMPTS)
                if pause is None:
                    break
                self._sleep(pause or 2.0 ** (attempt - 1))
            file.seek(0)
            yield file

    def get(self, address: str) -> bytes:
        """Return the content of *address*; raises what `download` raises."""
        with self.download(address) as file:
            return file.read()

    def _try(self, address: str, file: IO[bytes], *, is_last: bool) -> float | None:
        """Read *address* into *file*; return the pause before trying again, or None when done."""
        if not is_address(address):
            raise SourceError(f"{address} is no http address")
        if self._limit is not None:
            self._limit.wait()
        file.seek(0)
        file.truncate()
        try:
            request = urllib.request.Request(address, headers=self._headers)  # noqa: S310  checked
            with urllib.request.urlopen(request, timeout=self._timeout) as answer:  # noqa: S310
                self._copy(answer, file, address)
        except urllib.error.HTTPError as error:
            with error:
                return _pause(error, address, is_last=is_last)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if is_last or isinstance(error, ValueError):
                raise SourceError(f"cannot read {address}: {_reason(error)}") from None
            return 0
        return None

    def _copy(self, answer: http.client.HTTPResponse, file: IO[bytes], address: str) -> None:
        size = 0
        while chunk := answer.read(_CHUNK):
            size += len(chunk)
            if size > self._largest:
                raise SourceError(f"{address} is larger than {self._largest:,} bytes")
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

    def get(self, address: str, fetch: Callable[[str], bytes]) -> bytes:
        """Return the kept answer, or the one of *fetch*, which is then kept."""
        name = hashlib.sha256(address.encode("utf-8", "replace")).hexdigest()
        path = self._folder / name[:2] / name
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime < self._seconds:
                return path.read_bytes()
        data = fetch(address)
        with contextlib.suppress(OSError):  # a full disk must not stop an import
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f"{name}.{os.getpid()}.tmp")
            temporary.write_bytes(data)
            temporary.replace(path)
        return data


def is_address(source: str) -> bool:
    """Return whether *source* is an http or https address."""
    return source.casefold().startswith(("http://", "https://"))


def _pause(error: urllib.error.HTTPError, address: str, *, is_last: bool) -> float:
    if error.code in (404, 410):
        raise NotFoundOnServerError(f"there is nothing at {address} ({error.code})")
    if is_last or error.code not in _RETRIED:
        hint = "; check the key" if error.code in (401, 403) else ""
        raise SourceError(f"{address} answered {error.code} {error.reason}{hint}")
    after = error.headers.get("Retry-After", "")
    return min(float(after), _LONGEST_PAUSE) if after.isdigit() else 0


def _reason(error: Exception) -> str:
    inner = getattr(error, "reason", None)
    return str(inner or error) or type(error).__name__
