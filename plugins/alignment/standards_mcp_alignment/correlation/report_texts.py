"""The sentences and cells that the reports for people share."""

from __future__ import annotations

from collections.abc import Iterator

from standards_mcp.commands import counted
from standards_mcp_alignment.provenance import Provenance

from .outcomes import AlignmentReport, Verdict

MEANING = (
    "A probability estimates how often a person who labels such a text names exactly this "
    "standard. A neighbour of it, such as its cluster, may fit as well."
)


def summary_lines(report: AlignmentReport) -> Iterator[str]:
    """Yield what the report contains, each line a sentence."""
    numbers = report.summary()
    pairs = counted(numbers["pairs"], "pair")
    yield f"{counted(numbers['items'], 'item')} of {counted(numbers['files'], 'file')}, {pairs}."
    yield (
        f"Accepted: {numbers['accepted']:,}, of them automatically "
        f"{numbers['accepted_automatically']:,} "
        f"({numbers['share_accepted_automatically']:.1%} of the pairs). "
        f"To review: {numbers['proposed']:,}. Rejected or replaced: "
        f"{numbers['rejected'] + numbers['replaced']:,}."
    )
    yield MEANING
    yield from report.notes
    for skipped in report.skipped:
        yield f"Not read: {skipped.name}: {skipped.reason}."


def digests(provenance: Provenance) -> Iterator[tuple[str, str]]:
    """Yield what each digest is of, and the digest."""
    yield f"catalog ({counted(provenance.catalog_records, 'standard')})", provenance.catalog
    yield f"model ({provenance.model_name})", provenance.model
    yield "settings", provenance.settings
    yield from provenance.inputs.items()


def probability_text(probability: float | None) -> str:
    """Return a probability for people; a dash if there is none."""
    return "-" if probability is None else f"{probability:.0%}"


def status_text(verdict: Verdict) -> str:
    """Return the status, with who decided and why the standard is listed."""
    by = f" ({verdict.decided_by})" if verdict.decided_by else ""
    stated = ", stated in the item" if verdict.pair.basis == "stated" else ""
    retired = ", retired" if verdict.pair.is_retired else ""
    return f"{verdict.status}{by}{stated}{retired}"
