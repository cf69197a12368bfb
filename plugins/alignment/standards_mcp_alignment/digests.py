"""Make the digests of a report, see `answers.Digests`."""

from __future__ import annotations

from collections.abc import Iterable

from standards_mcp_catalog import StandardRecord

from . import provenance

_LENGTH = 16


def digest(value: object) -> str:
    """Return the digest of JSON data, the same for each order of keys."""
    return provenance.digest_of(value)[:_LENGTH]


def records_digest(records: Iterable[StandardRecord]) -> str:
    """Return the digest of standards, the same for each order of them."""
    return provenance.records_digest(records)[:_LENGTH]
