"""The trial of a plugin in a process of its own, before it is loaded in the host's process."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

from standards_mcp.config.layers import DOT_ENV
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.remote.transports.ending import describe_code, kill_tree

from .plugin import other_variables
from .protocol import TRIAL_PASSED, WorkerConfig


def try_apart(worker: WorkerConfig, phase: str, loaded: LoadedSettings) -> str:
    """Return how a plugin ended or hung a process that loaded it, or an empty string.

    The process has the rights and the variables of this one, where the plugin is loaded next.
    """
    changes = {
        "memory": None,
        "variables": other_variables(loaded.layers, DOT_ENV),
        "trial": phase,
    }
    config, timing = worker.model_copy(update=changes), worker.timing
    command = [sys.executable, "-P", "-m", "standards_mcp.server.isolated.process", worker.name]
    process = subprocess.Popen(  # noqa: S603  - our own program
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin  # noqa: S101  - it was asked for
    try:
        with suppress(OSError):  # it has ended already
            process.stdin.write(config.model_dump_json().encode() + b"\n")
            process.stdin.flush()  # and left open: its end would be the end of the host
        code = process.wait(timing.trial)
    except subprocess.TimeoutExpired:
        return f"it was not done after {timing.trial:g} s"
    finally:
        kill_tree(process)
        process.wait()
        with suppress(OSError):
            process.stdin.close()
    return "" if code == TRIAL_PASSED else describe_code(code)
