"""Open the audit log, which the service writes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from standards_mcp._utils.entry_points import own_entry_points
from standards_mcp._utils.installation import SERVICE, install_command
from standards_mcp.errors import StandardsMcpError
from standards_mcp.host import Host


@contextmanager
def audited(host: Host, transport: str, version: str) -> Generator[Any]:
    """Write the audit log of a host while the context is open, if one is configured.

    Args:
        transport: The transport of the calls: ``http`` or ``stdio``.
        version: The host's version.

    Raises:
        StandardsMcpError: The log is required and cannot be written, or the service is missing.
    """
    if host.settings.server.audit.path is None:
        yield None
        return
    open_log = log_opener()
    with open_log(host, transport, version) as audit:
        yield audit


def log_opener() -> Callable[[Host, str, str], AbstractContextManager[Any]]:
    """Return the function that opens the log for a host, a transport and the host's version.

    Raises:
        StandardsMcpError: The service is missing. Without a log, no call may run.
    """
    points = own_entry_points("standards_mcp.audit")
    if not points:
        problem = f"[server.audit] path is set, and {SERVICE}, which writes the log, is missing"
        raise StandardsMcpError(f"{problem}; run `{install_command(SERVICE)}`, or remove the key")
    open_log: Callable[[Host, str, str], AbstractContextManager[Any]] = points["file"].load()
    return open_log
