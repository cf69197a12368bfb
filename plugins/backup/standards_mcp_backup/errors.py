"""The error of backups."""

from __future__ import annotations

from standards_mcp.errors import StandardsMcpError


class BackupError(StandardsMcpError):
    """A backup cannot be made, read or restored; the message says why."""
