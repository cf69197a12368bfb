"""The audit log: the caller, the arguments and the outcome of each call, as one JSON object a line.

Several processes may write to the same file. A full file is rotated. The lines of one process are a
chain: each has its own digest and the one of the line before it, see docs/serving.md.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import logging
import math
import os
import re
import secrets
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from standards_mcp.errors import NotAuditedError, StandardsMcpError
from standards_mcp.files import FILE_MODE, private_folder, write_private
from standards_mcp.transports import (
    MASK,
    NO_ERRORS,
    CallRecord,
    Host,
    Observer,
    looks_secret,
    mask,
    masked_data,
    reason_of,
)

log = logging.getLogger(__name__)

_CANONICAL_ENCODER: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
)
_LINE_ENCODER: Final = json.JSONEncoder(default=str)
_KEY_BYTES: Final = 32
_MAX_ARGUMENT_CHARS: Final = 16_384  # after secrets are masked
_LINE_END: Final = re.compile(rb'([0-9a-f]{64})"}\n')
_APPEND_FLAGS: Final = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)  # Windows
)
_Fields: TypeAlias = Mapping[str, Any]


class Audit(Observer):
    """Write a line at the end of each call, and before it, too, if the log is required.

    Args:
        path: The log file.
        transport: The transport of the calls: ``http`` or ``stdio``.

    Attributes:
        is_required: True if a call is refused when its line cannot be written.
        problem: The reason why the last line was not written, or an empty string.
        lost: Number of events that were not written since the start of this process.
    """

    def __init__(self, host: Host, path: Path, transport: str) -> None:
        settings = host.settings.server.audit
        self._path, self._transport, self._secrets = path, transport, host.secrets
        self._file = RotatedFile(path, settings.max_bytes, settings.files)
        self.is_required = settings.required
        is_hashed = settings.arguments == "hash"
        self._hash = hmac.new(_hash_key(host.state_dir), digestmod="sha256") if is_hashed else None
        self._call_ids: dict[int, str] = {}
        self.problem = ""
        self.lost = self._lost_in_outage = 0
        self._chain, self._entry, self._previous = secrets.token_hex(8), 1, _last_digest(path)

    def check(self) -> str:
        """Retry writing after a failure; return the current problem, or an empty string."""
        if self.problem and self._write({"event": "audit resumed", "lost": self._lost_in_outage}):
            fields = {"path": str(self._path), "lost": self._lost_in_outage}
            log.warning("the audit log is written again", extra=fields)
            self.problem, self._lost_in_outage = "", 0
        return self.problem

    def begin(self, version: str) -> None:
        """Write that the service has started."""
        self._write({"event": "service started", "version": version, "process": os.getpid()})

    def admit(self, record: CallRecord) -> None:
        """Write that a call begins.

        Raises:
            NotAuditedError: The line cannot be written, so the call must not run.
        """
        call = secrets.token_hex(8)
        if self.check() or not self._write(self._line(record) | {"call": call}):
            raise NotAuditedError
        self._call_ids[id(record)] = call

    def call_ended(self, record: CallRecord) -> None:
        """Write the outcome of a call."""
        line = self._line(record)
        if call := self._call_ids.pop(id(record), None):
            line["call"] = call
        self._write_or_count(line)

    def announce(self, event: str, fields: _Fields) -> None:
        """Write an action before it is taken, if the log is required.

        Raises:
            NotAuditedError: The line cannot be written, so the action must not be taken.
        """
        if self.is_required and (self.check() or not self._write({"event": event, **fields})):
            raise NotAuditedError

    def note(self, event: str, fields: _Fields) -> None:
        """Write an event other than a call, such as a change of the configuration."""
        self._write_or_count({"event": event, **fields})

    def close(self) -> None:
        """Write that the service ends, and close the file."""
        self.note("service ended", {})
        self._file.close()

    def _line(self, record: CallRecord) -> dict[str, Any]:
        line: dict[str, Any] = {
            "event": "call",
            "caller": record.caller,
            "transport": self._transport,
            "session": record.session,
            "kind": record.kind,
            "name": record.name if record.plugin else mask(record.name, self._secrets()),
            "plugin": record.plugin,
            **self._argument_fields(record.arguments),
        }
        if record.outcome in NO_ERRORS:
            line["outcome"] = record.outcome
        else:
            line |= {"outcome": "error", "error_type": record.outcome, "incident": record.incident}
        if record.outcome != "running":
            line["duration_ms"] = round(record.seconds * 1000, 2)
        return {key: value for key, value in line.items() if value != ""}

    def _argument_fields(self, arguments: _Fields) -> _Fields:
        """Return the fields for arguments: a keyed hash, or the values without secrets."""
        if self._hash:
            digest = self._hash.copy()
            digest.update(canonical(arguments).encode("utf-8", "surrogatepass"))
            return {"arguments_hmac": digest.hexdigest()}
        values, texts = _without_secrets(arguments), self._secrets()
        line = _LINE_ENCODER.encode(values)
        if len(line) > _MAX_ARGUMENT_CHARS:
            # Cut twice: masking megabytes is slow, and mask() misses a secret that a cut splits.
            start = mask(line[: 2 * _MAX_ARGUMENT_CHARS], texts)[:_MAX_ARGUMENT_CHARS]
            return {"arguments": start, "arguments_are_cut": True}
        return {"arguments": masked_data(values, texts)}

    def _write_or_count(self, line: _Fields) -> None:
        if self.check() or not self._write(line):
            self.lost += 1
            self._lost_in_outage += 1

    def _write(self, line: _Fields) -> bool:
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        link = {"chain": self._chain, "entry": self._entry, "previous": self._previous}
        text = _LINE_ENCODER.encode({"time": time, **line, **link})
        digest = hashlib.sha256(text.encode()).hexdigest()
        try:
            self._file.append(f'{text[:-1]}, "digest": "{digest}"}}\n'.encode())
        except OSError as exc:
            reason = reason_of(exc)
            if not self.problem:
                fields = {"path": str(self._path), "reason": reason}
                log.error("the audit log cannot be written", extra=fields)  # noqa: TRY400  - the reason says it all
            self.problem = reason
            return False
        self._entry, self._previous = self._entry + 1, digest
        return True


@contextmanager
def open_audit(host: Host, transport: str, version: str) -> Generator[Audit | None]:
    """Write the audit log of a host while the context is open. See `standards_mcp.transports`.

    Raises:
        StandardsMcpError: The log is required and cannot be written.
    """
    settings = host.settings.server.audit
    if settings.path is None:
        yield None
        return
    audit = Audit(host, settings.path, transport)
    audit.begin(version)
    if settings.required:
        if problem := audit.check():
            raise StandardsMcpError(
                f"the audit log {settings.path} cannot be written: {problem}; change [server.audit]"
                " path, or set required = false"
            )
        host.guard(audit.admit)
    host.observe(audit)
    try:
        yield audit
    finally:
        audit.close()


def _last_digest(path: Path) -> str:
    """Return the digest of the last line of a file, of any process, or "" without one."""
    if path.is_file():  # reading from a pipe would wait
        with suppress(OSError), path.open("rb") as file:
            file.seek(-len(f'{"":64}"}}\n'), os.SEEK_END)
            if match := _LINE_END.fullmatch(file.read()):
                return match[1].decode()
    return ""


def canonical(arguments: _Fields) -> str:
    """Return arguments as JSON, the same text for equal arguments."""
    return _CANONICAL_ENCODER.encode(dict(arguments))


def _without_secrets(value: object) -> Any:
    """Mask the values in *value* whose keys look like the name of a secret."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {
            key: MASK if looks_secret(str(key)) else _without_secrets(item) for key, item in items
        }
    if isinstance(value, list | tuple):
        return [_without_secrets(item) for item in cast("Iterable[object]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such number
    return value


def _hash_key(folder: Path) -> bytes:
    """Return the key for hashes of arguments, shared by all processes with this state folder.

    Without a key, a reader of the log could guess short arguments from their hashes.
    """
    import filelock  # noqa: PLC0415  - costs start-up time

    path = folder / "audit.key"
    try:
        private_folder(folder)
        with filelock.FileLock(f"{path}.lock", 10, FILE_MODE):
            if not path.exists():
                # Rename a complete file, so that no process can read half a key.
                new = path.with_name(f"{path.name}.new")
                write_private(new, secrets.token_hex(_KEY_BYTES))
                new.replace(path)
            key = bytes.fromhex(path.read_text(encoding="ascii"))
        if len(key) != _KEY_BYTES:
            raise ValueError("the file does not contain a key")  # noqa: TRY301  - handled as an unreadable file
    except (OSError, ValueError) as exc:
        log.warning(
            "the key of the audit log cannot be stored, so its hashes can be compared within this "
            "process only; make the file writable for the service, or remove it if it is not a key",
            extra={"path": str(path), "reason": str(exc)},
        )
        return secrets.token_bytes(_KEY_BYTES)
    return key


# `RotatingFileHandler` swallows errors, gives a file the mode of the umask, and loses lines if
# several processes rotate.
class RotatedFile:
    """Append lines to a file. A full file is renamed to ``.1``, the previous ``.1`` to ``.2``.

    Each line is one write to the end of the file, so lines of several processes do not mix. After
    `append` the operating system has the line, so the line survives a crash of the process, but not
    a power failure. An incomplete line, on a full disk, is removed. If another program renames the
    file, a new file is created. A link, such as ``/dev/stderr``, is never renamed.

    Args:
        max_bytes: The size at which the file is full.
        kept: Number of full files to keep.
    """

    def __init__(self, path: Path, max_bytes: int, kept: int) -> None:
        self._path, self._max_bytes, self._kept = path, max_bytes, kept
        self._descriptor: int | None = None
        self._size = 0
        self._has_failed_to_rotate = False

    def append(self, line: bytes) -> None:
        """Write a line, which includes its line feed.

        Raises:
            OSError: The line was not written, or not completely.
        """
        descriptor, size = self._open()
        is_full = size > 0 and size + len(line) > self._max_bytes
        if is_full and not self._path.is_symlink():
            self._try_to_rotate(descriptor)
            descriptor, size = self._open()
        data = b"\n" + line if self._ends_with_incomplete_line(size) else line
        # In the event loop, because it takes microseconds. `fsync` would take milliseconds for each
        # call, and protects against a loss of power only.
        written = os.write(descriptor, data)
        if written < len(data):
            self._remove_end(descriptor, written)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size = size + written

    def _remove_end(self, descriptor: int, length: int) -> None:
        """Remove the incomplete line that was just written, unless another process wrote more."""
        self._size = 0
        with suppress(OSError):  # a pipe cannot be cut
            end = os.lseek(descriptor, 0, os.SEEK_CUR)
            if os.fstat(descriptor).st_size == end:
                os.ftruncate(descriptor, end - length)

    def _ends_with_incomplete_line(self, size: int) -> bool:
        """True if this or another process has left an incomplete line at the end."""
        if size in (0, self._size):  # a pipe, or this process wrote the last line
            return False
        with suppress(OSError), self._path.open("rb", buffering=0) as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
        return False

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> tuple[int, int]:
        """Return the descriptor and the size of the file that has the path now."""
        if self._descriptor is not None:
            with suppress(FileNotFoundError):
                current = self._path.stat()
                if os.path.samestat(current, os.fstat(self._descriptor)):
                    return self._descriptor, current.st_size
            self.close()
        self._descriptor = os.open(self._path, _APPEND_FLAGS, 0o600)
        self._size = 0
        return self._descriptor, os.fstat(self._descriptor).st_size

    def _try_to_rotate(self, full: int) -> None:
        """Rename the full file; if that fails, let it grow, so that no line is lost."""
        import filelock  # noqa: PLC0415  - costs start-up time

        try:
            # A timeout or a missing file means that another process is renaming the file.
            if_others_rename = suppress(filelock.Timeout, FileNotFoundError)
            with if_others_rename, filelock.FileLock(f"{self._path}.lock", timeout=0):
                if os.path.samestat(self._path.stat(), os.fstat(full)):
                    self._rotate()
        except OSError as exc:
            if not self._has_failed_to_rotate:
                fields = {"path": str(self._path), "reason": reason_of(exc)}
                log.error("a full file cannot be renamed, and grows on", extra=fields)  # noqa: TRY400  - the reason says it all
            self._has_failed_to_rotate = True
        else:
            self._has_failed_to_rotate = False

    def _rotate(self) -> None:
        self.close()  # on Windows, an open file cannot be renamed
        names = [f"{self._path.name}.{number}" for number in range(self._kept, 0, -1)]
        full = [self._path.with_name(name) for name in names]
        for newer, older in zip(full[1:], full, strict=False):
            with suppress(FileNotFoundError):
                newer.replace(older)
        self._path.replace(full[-1])
