"""Timeouts and waiting times of the host. No configuration key sets these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timing:
    """Limits in seconds.

    Attributes:
        start: For a plugin's lifespan to start; clients give a server 30 to 60.
        head_start: Until the next plugin is started, although one is still starting.
        stop: For a plugin's lifespan to stop; then it is abandoned.
        end: For all plugins together to stop; then the process is ended.
        hung: Until the log names a plugin that is still loading, and other processes suspect it.
        patience: For the host to wait for the trial of a plugin that ended an earlier start; then
            it starts without the plugin. The least patient client waits for 10.
        health: For the health checks of all plugins together.
        wrappers: For each wrapper of a call, in addition to the time of the wrapped call.
        redis: For one answer of Redis; then the call continues without it.
        retry: Until a process or server that failed to start with the host is started again.
        listen: Until a stream of changes that ended is opened again.
        stuck: For an isolated process to answer, and for a function to return, after a call was
            cancelled.
        drain: For other calls to end before a stuck process is ended; one may be asking a user.
        slow_server: `doctor` reports a start that takes longer; the least patient client waits for
            10.
        slow_plugin: `doctor` blames a plugin that takes longer for a slow start.
        trial: For the server that `doctor` starts to end, and for the process of a plugin's trial.
    """

    start: float = 20.0
    head_start: float = 2.0
    stop: float = 5.0
    end: float = 8.0
    hung: float = 10.0
    patience: float = 8.0
    health: float = 10.0
    wrappers: float = 5.0
    redis: float = 2.0
    retry: float = 60.0
    listen: float = 10.0
    stuck: float = 5.0
    drain: float = 30.0
    slow_server: float = 5.0
    slow_plugin: float = 1.0
    trial: float = 60.0


DEFAULT_TIMING: Final = Timing()
