"""Announce and note in the logs what people do on the admin page."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from standards_mcp.errors import NotAuditedError
from standards_mcp.transports import Host, masked_data
from standards_mcp_service.audit_log import Audit

log = logging.getLogger("standards_mcp.service")


class RefusedError(Exception):
    """An action was not taken, or has no effect yet; the text says why."""


class Actions:
    """The log and the audit log of the actions of people. Secrets in fields are masked.

    Args:
        audit: The audit log, if there is one.
    """

    def __init__(self, host: Host, audit: Audit | None) -> None:
        self._host, self._audit = host, audit

    def announce(self, event: str, fields: Mapping[str, Any]) -> None:
        """Write an action before it is taken, if the audit log is required.

        Raises:
            RefusedError: The line cannot be written, so the action must not be taken.
        """
        try:
            if self._audit:
                self._audit.announce(event, self._masked(fields))
        except NotAuditedError as exc:
            raise RefusedError(f"Nothing is changed. {exc}") from None

    def note(self, event: str, fields: Mapping[str, Any]) -> None:
        """Write an action, or its result, to both logs."""
        masked = self._masked(fields)
        log.info(event, extra=dict(masked))
        if self._audit:
            self._audit.note(event, masked)

    def _masked(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        masked: Mapping[str, Any] = masked_data(fields, self._host.secrets())
        return masked
