"""Open the audit log, which the service writes."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from standards_mcp._utils.entry_points import own_entry_points
from standards_mcp._utils.installation import missing_service
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
    if not (points := own_entry_points("standards_mcp.audit")):
        raise StandardsMcpError(f"[server.audit] path: {missing_service()}")
    with points["file"].load()(host, transport, version) as audit:
        yield audit
