"""Open the audit log; a package in the host's own wheel writes it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from standards_mcp._utils.entry_points import own_entry_points
from standards_mcp.host import Host


@contextmanager
def audited(host: Host, transport: str, version: str) -> Generator[Any]:
    """Write the audit log of a host while the context is open, if one is configured.

    Args:
        transport: The transport of the calls: ``http`` or ``stdio``.
        version: The host's version.

    Raises:
        StandardsMcpError: The log is required and cannot be written.
    """
    if host.settings.server.audit.path is None:
        yield None
        return
    (point,) = own_entry_points("standards_mcp.audit").values()
    with point.load()(host, transport, version) as audit:
        yield audit
