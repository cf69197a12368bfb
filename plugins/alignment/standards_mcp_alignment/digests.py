"""Digests of the origins of a report, so that two reports can be compared later."""

from __future__ import annotations

from collections.abc import Iterable

from typing_extensions import TypedDict

from standards_mcp_catalog import StandardRecord

from . import provenance

_LENGTH = 16


class Digests(TypedDict):
    """The origin of a report; equal digests mean equal reports.

    ``catalog``, ``settings`` and ``input`` are the first 16 hexadecimal digits of a SHA-256: of the
    standards that were compared, of all arguments and thresholds, and of the texts. ``model`` is
    the name of the text encoder, or empty if none was used.
    """

    catalog: str
    model: str
    settings: str
    input: str


def digest(value: object) -> str:
    """Return the digest of JSON data, the same for each order of keys."""
    return provenance.digest_of(value)[:_LENGTH]


def records_digest(records: Iterable[StandardRecord]) -> str:
    """Return the digest of standards, the same for each order of them."""
    return provenance.records_digest(records)[:_LENGTH]
