"""Open the port or the Unix socket of the service, and run the worker processes that share it.

`uvicorn.Config.bind_socket` makes a Unix socket that every user of the machine may use, and exits
the process on errors. `uvicorn.supervisors.Multiprocess` spawns workers that share no memory with
their parent, starts all of them at once, restarts a failing one without a delay, kills one that is
busy for five seconds, and replaces them at SIGHUP in place of a reload.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import select
import signal
import socket
import stat
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from standards_mcp._utils.addresses import is_loopback
from standards_mcp.config.models.http import HttpSettings
from standards_mcp.errors import ConfigError, StandardsMcpError

from .guards import MCP

log = logging.getLogger(__name__)

_BACKLOG: Final = 2048
_PROBE_SECONDS: Final = 1.0
_MODE: Final = 0o660
"""Access to a Unix socket for the user and the group of the process, such as the proxy's."""
_STEADY_SECONDS: Final = 60.0
_LONGEST_DELAY: Final = 30.0
_READY: Final = b"."
_RELOAD: Final = b"r"
_SIGNALS: Final = tuple(
    getattr(signal, name)
    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGCHLD")
    if hasattr(signal, name)
)


def is_local(settings: HttpSettings) -> bool:
    """True if only programs of this machine reach the service."""
    return settings.uds is not None or is_loopback(settings.host)


def is_private(settings: HttpSettings) -> bool:
    """True if only programs of this machine should reach the service, also not through a proxy."""
    return is_local(settings) and not settings.allowed_hosts


def check_exposure(settings: HttpSettings) -> None:
    """Refuse to serve other machines without tokens by accident.

    Raises:
        ConfigError: The service would listen beyond this machine without tokens.
    """
    if is_local(settings) or settings.auth.is_required or settings.allowed_hosts:
        return
    raise ConfigError(
        f"[server] host is {settings.host!r}, and anybody who reaches it could use the service."
        " Make a token with `standards-mcp auth token new NAME`, or name the hosts under which it"
        " is reached in [server] allowed_hosts; --insecure serves everybody"
    )


def listen(settings: HttpSettings) -> socket.socket:
    """Return a socket that listens at the address of the settings.

    Raises:
        StandardsMcpError: The address is not available.
    """
    if settings.uds is not None:
        return _listen_at_path(settings.uds)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # Only with the protocol, asyncio disables Nagle's algorithm, which adds 40 ms to a call.
        listening = socket.socket(family, kind, protocol)
        with ExitStack() as undo:
            undo.callback(listening.close)
            if os.name != "nt":  # on Windows, two servers could then have one port
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(_BACKLOG)
            undo.pop_all()
            return listening
    except OSError as exc:
        where = f"{settings.host}:{settings.port}"
        why = exc.strerror if isinstance(exc, socket.gaierror) else os.strerror(exc.errno or 0)
        raise StandardsMcpError(
            f"cannot listen at {where}: {why}; choose another [server] host or --port"
        ) from None


def _listen_at_path(path: Path) -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise ConfigError("[server] uds: Windows has no Unix sockets; use host and port")
    try:
        _remove_stale(path)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with ExitStack() as undo:
            undo.callback(listening.close)
            listening.bind(str(path))
            path.chmod(_MODE)  # clients can connect only after the next line
            listening.listen(_BACKLOG)
            undo.pop_all()
            return listening
    except OSError as exc:  # the error for a path that is too long has no number
        why = os.strerror(exc.errno) if exc.errno else str(exc)
        raise StandardsMcpError(
            f"cannot listen at {path}: {why}; choose another [server] uds"
        ) from None


def _remove_stale(path: Path) -> None:
    """Remove the socket file of a process that has ended."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise StandardsMcpError(f"{path} is not a socket; choose another [server] uds")
        with (
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe,
            suppress(ConnectionRefusedError),
        ):
            probe.settimeout(_PROBE_SECONDS)
            # A process with a full backlog listens, too.
            with suppress(TimeoutError, BlockingIOError):
                probe.connect(str(path))
            raise StandardsMcpError(
                f"another process listens at {path}; choose another [server] uds"
            )
        path.unlink()


def url_of(listening: socket.socket) -> str:
    """Return the address of MCP at a socket."""
    if listening.family not in (socket.AF_INET, socket.AF_INET6):
        return f"unix:{listening.getsockname()}"
    host, port, *_ = listening.getsockname()
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{MCP}"


def check_workers(settings: HttpSettings) -> None:
    """Refuse several workers if they cannot replace a single one.

    Raises:
        ConfigError: The system cannot fork, or clients would have sessions.
    """
    if settings.workers == 1:
        return
    if not hasattr(os, "fork"):
        raise ConfigError("[server] workers needs a system that can fork, which Windows cannot")
    # To pass requests on to the process of a session, all workers would have to reach each other
    # and share a list of sessions. A balancer does this with a few lines of configuration.
    if not settings.stateless:
        raise ConfigError(
            f"[server] workers is {settings.workers}, and a session lives in one process: add"
            " --stateless or [server] stateless = true, or put services of one worker each behind"
            " a balancer, see docs/serving.md"
        )


def shared_settings(settings: HttpSettings) -> dict[str, str]:
    """Return the settings that must be the same for all workers, fixed before the first one.

    The file may have changed when a worker is replaced. Another worker may receive the reply to a
    question, and a service that needs tokens must need them in each worker.
    """
    key = settings.state_key
    state_key = key.get_secret_value() if key else secrets.token_hex(32)
    shared = {"server.stateless": "true", "server.state_key": json.dumps(state_key)}
    if settings.auth.is_required:
        shared["server.auth.required"] = "true"
    return shared


class Parent:
    """A worker's channel to its parent process."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def tell_ready(self) -> None:
        """Report that this worker serves; from now on, end it if the parent is gone.

        Call it in the event loop.
        """
        with suppress(OSError):
            self._channel.send(_READY)
        asyncio.get_running_loop().add_reader(self._channel, self._end)

    def ask_for_reload(self) -> None:
        """Let all workers reload the configuration."""
        with suppress(OSError):
            self._channel.send(_RELOAD)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._channel)
        os.kill(os.getpid(), signal.SIGTERM)


@dataclass(slots=True, eq=False)
class _WorkerSlot:
    """One worker after the other.

    Attributes:
        pid: The process id, or 0 without a process.
        channel: Carries the messages `_READY` and `_RELOAD` of the worker.
        began: The start of the worker, on the monotonic clock.
        due: The time for the start of the next worker.
        delay: The delay before that start, in seconds.
    """

    pid: int = 0
    channel: socket.socket | None = None
    began: float = 0.0
    due: float = 0.0
    delay: float = 0.0

    def close(self) -> None:
        if self.channel:
            self.channel.close()
        self.channel = None


class Workers:
    """Start worker processes, replace the ones that end, and pass signals on to all.

    This parent only forks: it imports no plugin and runs no thread, so that a worker starts like a
    process of its own. The first worker starts alone. An error that stops it would stop all
    workers, and is reported once; the others find the files that it prepares in the state folder.

    Args:
        listening: The socket at which all workers accept connections.
    """

    def __init__(self, count: int, listening: socket.socket) -> None:
        self._slots = [_WorkerSlot() for _ in range(count)]
        self._listening = listening
        self._is_serving = self._is_ending = False
        self._code = 0
        self._old_handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        self._signals, self._wakeup = socket.socketpair()

    def run(self) -> Parent | int:
        """Run the workers.

        Returns:
            In each worker, at once, the channel to its parent. In the parent, the exit code after
            all workers have ended.
        """
        log.info("starting workers", extra={"workers": len(self._slots)})
        for end in (self._signals, self._wakeup):
            end.setblocking(False)
        signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, lambda _number, _frame: None)
        while True:
            for slot in self._due():
                if parent := self._start(slot):
                    return parent
            self._wait()
            self._reap()
            if self._is_ending and not any(slot.pid for slot in self._slots):
                return self._code

    def _due(self) -> list[_WorkerSlot]:
        if self._is_ending:
            return []
        slots = self._slots if self._is_serving else self._slots[:1]
        return [slot for slot in slots if not slot.pid and slot.due <= time.monotonic()]

    def _start(self, slot: _WorkerSlot) -> Parent | None:
        ours, theirs = socket.socketpair()
        # A worker must not receive a signal while it still has the handlers of its parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        slot.pid, slot.channel, slot.began = os.fork(), ours, time.monotonic()
        if not slot.pid:
            self._become_worker()
        else:
            theirs.close()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        return None if slot.pid else Parent(theirs)

    def _become_worker(self) -> None:
        signal.set_wakeup_fd(-1)
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        # With the channels of other workers open, those could not see the end of the parent.
        for slot in self._slots:
            slot.close()
        self._signals.close()
        self._wakeup.close()

    def _wait(self) -> None:
        """Wait for a signal, a message of a worker, or the time to start a worker."""
        due = [slot.due for slot in self._slots if not slot.pid]
        seconds = None
        if due and self._is_serving and not self._is_ending:
            seconds = max(0.0, min(due) - time.monotonic())
        slots = {slot.channel: slot for slot in self._slots if slot.channel}
        readable, _, _ = select.select([self._signals, *slots], [], [], seconds)
        for channel in readable:
            if channel is self._signals:
                for number in self._signals.recv(1024):
                    self._pass_on(number)
            elif message := channel.recv(1):
                self._is_serving = True
                if message == _RELOAD:
                    self._send(signal.SIGHUP)
            else:
                slots[channel].close()

    def _pass_on(self, number: int) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self._end()
        elif number == signal.SIGHUP:
            self._send(signal.SIGHUP)

    def _end(self) -> None:
        self._is_ending = True
        self._listening.close()
        self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        for slot in self._slots:
            if slot.pid:
                os.kill(slot.pid, number)

    def _reap(self) -> None:
        for slot in self._slots:
            if slot.pid and (ended := os.waitpid(slot.pid, os.WNOHANG))[0]:
                self._note_end(slot, os.waitstatus_to_exitcode(ended[1]))

    def _note_end(self, slot: _WorkerSlot, code: int) -> None:
        pid, slot.pid, now = slot.pid, 0, time.monotonic()
        slot.close()
        if self._is_ending:
            # The signal itself ends a worker that is still starting.
            self._code = self._code or (0 if code == -signal.SIGTERM else abs(code))
        elif not self._is_serving:
            self._code = max(code, 1)
            self._end()
        else:
            is_steady = now - slot.began > _STEADY_SECONDS
            slot.delay = 0 if is_steady else min(2 * slot.delay or 1, _LONGEST_DELAY)
            slot.due = now + slot.delay
            fields = {"worker": pid, "code": code, "seconds": slot.delay}
            log.error("a worker ended, and is replaced", extra=fields)
