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
import signal
import socket
import stat
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from standards_mcp import is_loopback
from standards_mcp.errors import ConfigError, StandardsMcpError
from standards_mcp.transports import HttpSettings

from .guards import LOOPBACK, MCP

log = logging.getLogger("standards_mcp.service")

_BACKLOG: Final = 2048
_PROBE_SECONDS: Final = 1.0
_SOCKET_MODE: Final = 0o660
"""Access to a Unix socket for the user and the group of the process, such as the proxy's."""
_RESTART_SECONDS: Final = 1


def is_local(settings: HttpSettings) -> bool:
    """True if only programs of this machine reach the service."""
    return settings.uds is not None or is_loopback(settings.host)


def is_private(settings: HttpSettings) -> bool:
    """True if the service is for programs of this machine only, and no proxy is expected."""
    return is_local(settings) and not settings.allowed_hosts


def known_hosts(settings: HttpSettings) -> Collection[str]:
    """Return the names of hosts, or globs, that requests may name."""
    return settings.allowed_hosts or (LOOPBACK if is_local(settings) else ("*",))


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
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        listening = socket.create_server(
            (settings.host, settings.port), family=family, backlog=_BACKLOG
        )
        # Accepted sockets inherit it. Nagle's algorithm would add 40 ms to a call, and asyncio
        # disables it only for sockets that were made with the number of the protocol.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as exc:
        where = f"{settings.host}:{settings.port}"
        why = exc.strerror if isinstance(exc, socket.gaierror) else os.strerror(exc.errno or 0)
        raise StandardsMcpError(
            f"cannot listen at {where}: {why}; choose another [server] host or --port"
        ) from None
    return listening


def _listen_at_path(path: Path) -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise ConfigError("[server] uds: Windows has no Unix sockets; use host and port")
    try:
        _remove_stale(path)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with ExitStack() as undo:
            undo.callback(listening.close)
            listening.bind(str(path))
            path.chmod(_SOCKET_MODE)  # clients can connect only after the next line
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
    """Refuse several workers if the system or the settings do not support them.

    Raises:
        ConfigError: The system cannot fork, or the settings allow sessions.
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
    """Return the settings that must be the same for all workers, fixed before the first one starts.

    The configuration file may have changed when a worker is replaced. But any worker may receive
    the reply to a question, and a service that requires tokens must do so in each worker.
    """
    key = settings.state_key
    state_key = key.get_secret_value() if key else secrets.token_hex(32)
    shared = {"server.stateless": "true", "server.state_key": json.dumps(state_key)}
    if settings.auth.is_required:
        shared["server.auth.required"] = "true"
    return shared


class Parent:
    """The parent process of a worker.

    Args:
        pid: The process id of the parent.
        read_end: The read end of a pipe whose write end closes when the parent ends.
    """

    def __init__(self, pid: int, read_end: int) -> None:
        self._pid, self._read_end = pid, read_end

    def tell_ready(self) -> None:
        """Report that this worker is ready; from now on, end the worker when the parent ends.

        Call it in the event loop.
        """
        asyncio.get_running_loop().add_reader(self._read_end, self._end_worker)
        self._signal(signal.SIGUSR1)

    def ask_for_reload(self) -> None:
        """Let all workers reload the configuration."""
        self._signal(signal.SIGHUP)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _end_worker(self) -> None:
        asyncio.get_running_loop().remove_reader(self._read_end)
        os.kill(os.getpid(), signal.SIGTERM)


class Workers:
    """Start worker processes, replace the ones that end, and pass signals on to all.

    This parent only forks: it imports no plugin and runs no thread, so that a worker starts like a
    process of its own. The first worker starts alone: an error that would stop all workers is
    reported once, and the others find the files that the first prepares in the state folder.

    Args:
        listening: The socket at which all workers accept connections.
    """

    def __init__(self, count: int, listening: socket.socket) -> None:
        self._count, self._listening = count, listening
        self._pids = set[int]()
        self._wanted, self._exit_code = 1, 0
        self._has_served = self._is_ending = False

    def run(self) -> Parent | int:
        """Run the workers.

        Returns:
            In each worker: its `Parent`, at once. In the parent: the exit code, after all workers
            have ended.
        """
        log.info("starting workers", extra={"workers": self._count})
        actions: dict[int, Callable[[], None]] = {
            signal.SIGTERM: self._end,
            signal.SIGINT: self._end,
            signal.SIGHUP: lambda: self._send(signal.SIGHUP),
            signal.SIGUSR1: self._note_serving,
            signal.SIGCHLD: self._reap,
            signal.SIGALRM: self._want_all,
        }
        read_end, write_end = os.pipe()
        parent = Parent(os.getpid(), read_end)
        # A worker must not receive a signal before it has its own handlers.
        signal.pthread_sigmask(signal.SIG_BLOCK, actions)
        # Some systems drop a blocked signal that has no handler.
        before = {number: signal.signal(number, lambda _number, _frame: None) for number in actions}
        while not self._fork_missing():
            actions[signal.sigwait(actions)]()
            if self._is_ending and not self._pids:
                return self._exit_code
        os.close(write_end)
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, actions)
        return parent

    def _fork_missing(self) -> bool:
        """Start the missing workers; return True in each of them."""
        while len(self._pids) < self._wanted:
            pid = os.fork()
            if not pid:
                return True
            self._pids.add(pid)
        return False

    def _want_all(self) -> None:
        """Start the other workers after the first one serves, or after the pause for a failure."""
        if not self._is_ending:
            self._has_served, self._wanted = True, self._count

    def _note_serving(self) -> None:
        if not self._has_served:  # a later worker does not end the pause for a failure
            self._want_all()

    def _end(self) -> None:
        self._is_ending, self._wanted = True, 0
        self._listening.close()
        self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        for pid in self._pids:
            os.kill(pid, number)

    def _reap(self) -> None:
        for pid in list(self._pids):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            self._pids.remove(pid)
            code = os.waitstatus_to_exitcode(status)
            if self._is_ending:
                # The signal itself ends a worker that is still starting.
                self._exit_code = self._exit_code or (0 if code == -signal.SIGTERM else abs(code))
            elif not self._has_served:
                self._exit_code = max(code, 1)
                self._end()
            else:
                log.error("a worker ended, and is replaced", extra={"worker": pid, "code": code})
                # A worker that fails at once must not keep the machine busy.
                self._wanted = 0
                signal.alarm(_RESTART_SECONDS)
