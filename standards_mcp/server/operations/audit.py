"""The audit log: who called what, with which outcome; one JSON object a line."""

from __future__ import annotations

import hmac
import json
import logging
import math
import os
import secrets
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from standards_mcp._utils.files import FILE_MODE, private_folder, write_private
from standards_mcp._utils.full_disk import reason_of
from standards_mcp._utils.secrets import MASK, looks_secret, mask, masked_data
from standards_mcp.calls.records import NO_ERRORS, CallRecord
from standards_mcp.config.models.http import AuditSettings
from standards_mcp.errors import NotAuditedError, StandardsMcpError
from standards_mcp.host import Host

from .rotated_file import RotatedFile

log = logging.getLogger(__name__)

_CANONICAL: Final = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str
)
_LINE: Final = json.JSONEncoder(default=str)
_KEY_BYTES: Final = 32
_MOST_ARGUMENTS: Final = 16_384  # characters of redacted ones


class Audit:
    """Writes a line at the end of each call, and with ``required`` one before it, too.

    Args:
        path: The file.
        transport: How the calls come.
        arguments: Returns what a line says of arguments.
        secrets: Returns what must not stand in the file.
    """

    def __init__(
        self,
        settings: AuditSettings,
        path: Path,
        transport: str,
        arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        secrets: Callable[[], Iterable[str]],
    ) -> None:
        self._path, self._transport = path, transport
        self._arguments, self._secrets = arguments, secrets
        self._file = RotatedFile(path, settings.max_bytes, settings.files)
        self._is_required = settings.required
        self._begun: dict[int, str] = {}
        self._problem = ""
        self._lost = self._lost_now = 0

    @property
    def is_required(self) -> bool:
        """Whether calls without a line in the log are refused."""
        return self._is_required

    @property
    def problem(self) -> str:
        """Why the last line could not be written; empty if it could."""
        return self._problem

    @property
    def lost(self) -> int:
        """How many calls and changes have no line since this process has begun."""
        return self._lost

    def check(self) -> str:
        """Return why no line can be written, after one more attempt; empty if one can."""
        if self._problem and self._write({"event": "audit resumed", "lost": self._lost_now}):
            self._resumed()
        return self._problem

    def begin(self, version: str) -> None:
        """Write that the service has begun."""
        self._write({"event": "service started", "version": version, "process": os.getpid()})

    def admit(self, record: CallRecord) -> None:
        """Write that a call begins.

        Raises:
            NotAuditedError: It cannot be written, so that the call must not run.
        """
        call = secrets.token_hex(8)
        if self.check() or not self._write(self._line(record) | {"call": call}):
            raise NotAuditedError
        self._begun[id(record)] = call

    def call_started(self, record: CallRecord) -> None:
        """Do nothing. See `Observer`."""

    def call_ended(self, record: CallRecord) -> None:
        """Write the outcome of a call."""
        line = self._line(record)
        if call := self._begun.pop(id(record), None):
            line["call"] = call
        self._write_or_count(line)

    def announce(self, event: str, fields: Mapping[str, str]) -> None:
        """Write what is about to be done, where the log is required.

        Raises:
            NotAuditedError: It cannot be written, so that it must not be done.
        """
        if self._is_required and (self.check() or not self._write({"event": event, **fields})):
            raise NotAuditedError

    def note(self, event: str, fields: Mapping[str, str]) -> None:
        """Write what is no call, such as a change of the configuration."""
        self._write_or_count({"event": event, **fields})

    def close(self) -> None:
        """Close the file."""
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
            **self._arguments(record.arguments),
        }
        if record.outcome in NO_ERRORS:
            line["outcome"] = record.outcome
        else:
            line |= {"outcome": "error", "error_type": record.outcome, "incident": record.incident}
        if record.outcome != "running":
            line["duration_ms"] = round(record.seconds * 1000, 2)
        return {key: value for key, value in line.items() if value != ""}

    def _write_or_count(self, line: Mapping[str, Any]) -> None:
        if self.check() or not self._write(line):
            self._lost += 1
            self._lost_now += 1

    def _write(self, line: Mapping[str, Any]) -> bool:
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        text = _LINE.encode({"time": time, **line})
        try:
            self._file.append(f"{text}\n".encode())
        except OSError as exc:
            reason = reason_of(exc)
            if not self._problem:
                fields = {"path": str(self._path), "reason": reason}
                log.error("the audit log cannot be written", extra=fields)  # noqa: TRY400  - the reason says it all
            self._problem = reason
            return False
        return True

    def _resumed(self) -> None:
        fields = {"path": str(self._path), "lost": self._lost_now}
        log.warning("the audit log is written again", extra=fields)
        self._problem, self._lost_now = "", 0


@contextmanager
def audited(host: Host, transport: str, version: str) -> Generator[Audit | None]:
    """Keep the audit log of a host, if it is to have one, while the context is open.

    Raises:
        StandardsMcpError: It is required and cannot be written.
    """
    settings = host.settings.server.audit
    if settings.path is None:
        yield None
        return
    arguments = _redacted(host.secrets)
    if settings.arguments == "hash":
        arguments = _hashed(_key(host.state_dir))
    audit = Audit(settings, settings.path, transport, arguments, host.secrets)
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


def _hashed(key: bytes) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    keyed = hmac.new(key, digestmod="sha256")

    def line(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        digest = keyed.copy()
        digest.update(canonical(arguments).encode("utf-8", "surrogatepass"))
        return {"arguments_hmac": digest.hexdigest()}

    return line


def canonical(arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON that is the same for equal ones."""
    return _CANONICAL.encode(dict(arguments))


def _redacted(
    secrets: Callable[[], Iterable[str]],
) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    def line(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        found, known = _without_secrets(arguments), frozenset(secrets())
        text = _LINE.encode(found)
        if len(text) > _MOST_ARGUMENTS:
            # Cut twice: masking megabytes takes long, and a half of a secret is not found.
            start = mask(text[: 2 * _MOST_ARGUMENTS], known)[:_MOST_ARGUMENTS]
            return {"arguments": start, "arguments_are_cut": True}
        return {"arguments": masked_data(found, known)}

    return line


def _without_secrets(value: object) -> Any:
    """Return *value* without what stands under a key that looks like that of a secret."""
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


def _key(folder: Path) -> bytes:
    """Return the key of hashes, the same for all processes with this state folder.

    Short arguments could be guessed by their plain hashes. Who has the log alone must not.
    """
    import filelock  # noqa: PLC0415  - costs start-up time

    path = folder / "audit.key"
    try:
        private_folder(folder)
        with filelock.FileLock(f"{path}.lock", 10, FILE_MODE):
            # One without content is what a full disk leaves of it.
            if not path.exists() or not path.stat().st_size:
                _write_key(path)
            key = bytes.fromhex(path.read_text(encoding="ascii"))
        if len(key) != _KEY_BYTES:
            raise ValueError("it is no key")  # noqa: TRY301  - as any other that cannot be read
    except (OSError, ValueError) as exc:
        log.warning(
            "the key of the audit log cannot be kept: its hashes are those of this process alone;"
            " let the service write the file, and remove it if it is no key",
            extra={"path": str(path), "reason": str(exc)},
        )
        return secrets.token_bytes(_KEY_BYTES)
    return key


def _write_key(path: Path) -> None:
    """Write a new key aside and put it into its place, so that nobody ever finds half of one."""
    new = path.with_name(f"{path.name}.new")
    write_private(new, secrets.token_hex(_KEY_BYTES))
    new.replace(path)
