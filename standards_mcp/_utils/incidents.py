"""Ids that join what a client is told of an internal error to its details in the log."""

from __future__ import annotations

import uuid


def new_incident() -> str:
    """Return an id of 12 hexadecimal digits."""
    return uuid.uuid4().hex[:12]


def internal_error(what: str, incident: str) -> str:
    """Return the message for a client.

    Args:
        what: What failed, to begin the sentence with.
    """
    return (
        f"{what} failed with an internal error (id {incident}). Try again; if it persists, the "
        "server's log has the details under this id."
    )
