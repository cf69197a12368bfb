"""Several processes that serve one port: a parent that starts workers, and replaces those that end.

The parent forks and does no more: it imports no plugin and runs no thread, so that a worker begins
as a process of its own would. The first worker starts alone. What keeps it from starting would keep
all, and is told once; what it prepares in the state folder, the others find.
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
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from standards_mcp.config.models.http import HttpSettings
from standards_mcp.errors import ConfigError

log = logging.getLogger(__name__)

_STEADY_SECONDS: Final = 60.0
_LONGEST_DELAY: Final = 30.0
_READY: Final = b"."
_RELOAD: Final = b"r"
_ENDING: Final = ("SIGTERM", "SIGINT")
_SIGNALS: Final = tuple(
    getattr(signal, name) for name in (*_ENDING, "SIGHUP", "SIGCHLD") if hasattr(signal, name)
)


def check_workers(settings: HttpSettings) -> None:
    """Refuse several workers where they cannot do what one can.

    Raises:
        ConfigError: The system cannot fork, or clients would have sessions.
    """
    if settings.workers == 1:
        return
    if not hasattr(os, "fork"):
        raise ConfigError("[server] workers needs a system that can fork, which Windows cannot")
    if not settings.stateless:
        raise ConfigError(
            f"[server] workers is {settings.workers}, and a session lives in one process: add"
            " --stateless or [server] stateless = true, or put services of one worker each behind"
            " a balancer, see docs/serving.md"
        )


def shared_settings(settings: HttpSettings) -> dict[str, str]:
    """Return the keys that must be the same for all workers, made before there are any.

    The file may say otherwise by the time a worker replaces another. A client that was asked
    something by one worker may reply to another, and one that needs a token here needs it there.
    """
    key = settings.state_key
    sealed_by = key.get_secret_value() if key else secrets.token_hex(32)
    shared = {"server.stateless": "true", "server.state_key": json.dumps(sealed_by)}
    if settings.auth.is_required:
        shared["server.auth.required"] = "true"
    return shared


class Parent:
    """What a worker knows of the process that started it."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def tell_ready(self) -> None:
        """Tell the parent that this worker serves, and end as if asked to when the parent is gone.

        It is called in the event loop.
        """
        with suppress(OSError):
            self._channel.send(_READY)
        asyncio.get_running_loop().add_reader(self._channel, self._left)

    def ask_for_reload(self) -> None:
        """Let all workers reload the configuration."""
        with suppress(OSError):
            self._channel.send(_RELOAD)

    def _left(self) -> None:
        asyncio.get_running_loop().remove_reader(self._channel)
        os.kill(os.getpid(), signal.SIGTERM)


@dataclass(slots=True, eq=False)
class _Place:
    """The place of one worker, and of those that follow it.

    Attributes:
        pid: 0 while none runs.
        channel: Brings a byte when the worker serves, and when all are to reload.
        began: When the worker was started, on the monotonic clock.
        due: When the next is to be started.
        delay: How long that one waits, in seconds.
    """

    pid: int = 0
    channel: socket.socket | None = None
    began: float = 0.0
    due: float = 0.0
    delay: float = 0.0


class Workers:
    """Runs so many workers, and passes signals on to them.

    Args:
        listening: What they all accept connections at.
    """

    def __init__(self, count: int, listening: socket.socket) -> None:
        self._places = [_Place() for _ in range(count)]
        self._listening = listening
        self._is_serving = self._is_ending = False
        self._code = 0
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}
        self._signals, self._wakeup = socket.socketpair()

    def run(self) -> Parent | int:
        """Start the workers.

        Returns:
            In each worker, at once, its parent. In the parent, when all workers have ended, the
            exit code.
        """
        log.info("starting workers", extra={"workers": len(self._places)})
        self._take_signals()
        while True:
            for place in self._due():
                if parent := self._start(place):
                    return parent
            self._wait()
            self._reap()
            if self._is_ending and not any(place.pid for place in self._places):
                return self._code

    def _take_signals(self) -> None:
        for each in (self._signals, self._wakeup):
            each.setblocking(False)
        signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, lambda _number, _frame: None)

    def _due(self) -> list[_Place]:
        if self._is_ending:
            return []
        places = self._places if self._is_serving else self._places[:1]
        return [each for each in places if not each.pid and each.due <= time.monotonic()]

    def _start(self, place: _Place) -> Parent | None:
        ours, theirs = socket.socketpair()
        # A signal must not reach a worker that still has the handlers of its parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        place.pid, place.channel, place.began = os.fork(), ours, time.monotonic()
        if not place.pid:
            self._become_worker()
        else:
            theirs.close()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        return None if place.pid else Parent(theirs)

    def _become_worker(self) -> None:
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        # Those of the other workers would show this process as their parent.
        channels = [place.channel for place in self._places if place.channel]
        for each in (self._signals, self._wakeup, *channels):
            each.close()

    def _wait(self) -> None:
        """Wait for a signal, for a worker that is ready, or until a worker is to be started."""
        waiting = [each.due for each in self._places if not each.pid]
        seconds = None
        if waiting and self._is_serving and not self._is_ending:
            seconds = max(0.0, min(waiting) - time.monotonic())
        channels = {each.channel: each for each in self._places if each.channel}
        readable, _, _ = select.select([self._signals, *channels], [], [], seconds)
        for each in readable:
            if each is self._signals:
                for number in self._signals.recv(1024):
                    self._pass_on(number)
            elif told := each.recv(1):
                self._is_serving = True
                if told == _RELOAD:
                    self._send(signal.SIGHUP)
            else:
                self._close(channels[each])

    def _pass_on(self, number: int) -> None:
        if number in [getattr(signal, name) for name in _ENDING]:
            self._end()
        elif number == signal.SIGHUP:
            self._send(signal.SIGHUP)

    def _end(self) -> None:
        self._is_ending = True
        self._listening.close()
        self._send(signal.SIGTERM)

    def _send(self, number: int) -> None:
        for place in self._places:
            if place.pid:
                os.kill(place.pid, number)

    def _reap(self) -> None:
        for place in self._places:
            if place.pid and (found := os.waitpid(place.pid, os.WNOHANG))[0]:
                self._note_end(place, os.waitstatus_to_exitcode(found[1]))

    def _note_end(self, place: _Place, code: int) -> None:
        pid, place.pid, now = place.pid, 0, time.monotonic()
        self._close(place)
        if self._is_ending:
            # A worker that was still starting ends by the signal.
            self._code = self._code or (0 if code == -signal.SIGTERM else abs(code))
            return
        if not self._is_serving:
            self._code = max(code, 1)
            self._end()
            return
        lived = now - place.began
        place.delay = 0 if lived > _STEADY_SECONDS else min(2 * place.delay or 1, _LONGEST_DELAY)
        place.due = now + place.delay
        fields = {"worker": pid, "code": code, "seconds": place.delay}
        log.error("a worker ended, and is replaced", extra=fields)

    def _close(self, place: _Place) -> None:
        if place.channel:
            place.channel.close()
        place.channel = None
