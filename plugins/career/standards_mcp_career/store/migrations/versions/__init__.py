"""The versions of the database, in order. What was released is never changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from . import (
    v0001_records,
    v0002_resumes,
    v0003_token_ir,
    v0004_index_runs,
    v0005_decisions,
    v0006_counters,
    v0007_audit_chain,
    v0008_receipts,
    v0009_stale_entries,
    v0010_originals,
)

UPGRADES: Final[tuple[Callable[[], None], ...]] = (
    v0001_records.upgrade,
    v0002_resumes.upgrade,
    v0003_token_ir.upgrade,
    v0004_index_runs.upgrade,
    v0005_decisions.upgrade,
    v0006_counters.upgrade,
    v0007_audit_chain.upgrade,
    v0008_receipts.upgrade,
    v0009_stale_entries.upgrade,
    v0010_originals.upgrade,
)
"""What each version does, from the first."""
