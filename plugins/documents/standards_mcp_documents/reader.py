"""Read documents in another process, with limits of size, time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, Final, Self

from .document import KINDS, Document, DocumentError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_MEGABYTE: Final = 1_000_000
_LARGEST_TEXT: Final = 10 * _MEGABYTE
_LARGEST_BINARY: Final = 100 * _MEGABYTE
_WORKER: Final = f"{__package__}.worker"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for one document.

    Attributes:
        seconds: Time to read it.
        memory: Address space of the process that reads it, in bytes (Linux).
        unpacked: Size of all parts of a Word document together, in bytes.
    """

    seconds: float = 30
    memory: int = 1000 * _MEGABYTE
    unpacked: int = 50 * _MEGABYTE


class DocumentReader:
    """Reads documents, one at a time, in a process that starts with the first one.

    Use it as a context manager, so that the process ends. A document that ends the process does not
    affect the next one.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Return the reader."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()

    def read(self, path: Path) -> Document:
        """Read a file as a document.

        Raises:
            DocumentError: The file is of another kind, too large, damaged or protected, has no
                text, or takes too much time or memory.
        """
        suffix = path.suffix.lower()
        try:
            if not S_ISREG(path.stat().st_mode):  # a pipe would make its reader wait
                raise DocumentError("it is not a file")
            with path.open("rb") as file:
                data = file.read(_largest(suffix) + 1)
        except OSError as error:
            raise DocumentError(f"it cannot be read: {error.strerror or error}") from error
        return self.parse(data, suffix)

    def parse(self, data: bytes, suffix: str) -> Document:
        """Read the bytes of a file as a document.

        Args:
            suffix: A key of `KINDS`.

        Raises:
            DocumentError: As for `read`.
        """
        if suffix not in KINDS:
            raise DocumentError(f"it has none of these suffixes: {', '.join(KINDS)}")
        if len(data) > (largest := _largest(suffix)):
            raise DocumentError(f"it is larger than {largest // _MEGABYTE} MB; split it")
        answer = self._ask(data, suffix)
        if "error" in answer:
            raise DocumentError(answer["error"])
        return _adapter().validate_python(answer)

    def close(self) -> None:
        """End the process; the next document starts a new one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):  # of a document that was not sent whole
                        stream.close()
            process.wait()

    def _ask(self, data: bytes, suffix: str) -> dict[str, Any]:
        process = self._running_process()
        assert process.stdin and process.stdout  # noqa: PT018, S101  - pipes
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            process.kill()

        timer = threading.Timer(self._limits.seconds, end)
        timer.start()
        is_usable = False
        try:
            process.stdin.write(json.dumps([suffix, len(data)]).encode() + b"\n" + data)
            process.stdin.flush()
            # JSON, not pickle: a file that takes over the process must not take over this one.
            answer: dict[str, Any] = json.loads(process.stdout.readline())
            is_usable = not answer.pop("is_last", False)
        except (OSError, ValueError) as error:
            if is_late.is_set():
                reason = f"reading it takes more than {self._limits.seconds:g} s"
            else:
                reason = "its reader crashed; it may be damaged"
            raise DocumentError(reason) from error
        finally:
            timer.cancel()
            timer.join()
            if is_late.is_set() or not is_usable:
                self.close()
        return answer

    def _running_process(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            # Without -P, Python would import modules from the working directory. In a session of
            # its own, Ctrl-C in a terminal reaches only this process.
            command = [sys.executable, "-P", "-m", _WORKER, json.dumps(asdict(self._limits))]
            try:
                self._process = subprocess.Popen(  # noqa: S603  - a module of ours
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                reason = f"the process that reads it cannot be started: {error}"
                raise DocumentError(reason) from error
        return self._process


@cache
def _adapter() -> TypeAdapter[Document]:
    # The worker imports this module, too, and starts faster without pydantic.
    from pydantic import TypeAdapter  # noqa: PLC0415

    return TypeAdapter(Document)


def _largest(suffix: str) -> int:
    return _LARGEST_BINARY if suffix in {".pdf", ".docx"} else _LARGEST_TEXT
