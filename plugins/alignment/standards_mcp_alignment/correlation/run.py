"""One run: read the files, correlate their items, decide, and make the report."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from standards_mcp.commands import counted
from standards_mcp_alignment.inputs import InputFile, Item, ItemReader, SkippedFile, find_files
from standards_mcp_alignment.inputs.documents import Split
from standards_mcp_alignment.provenance import digest_of, provenance_of
from standards_mcp_catalog import Catalog

from .calibration import Calibration, load_calibration
from .correlator import Correlator
from .deciding import Decider
from .journal import Journal
from .outcomes import AlignmentReport, Outcome
from .review import Decision, ReviewKey, review_key
from .scope import Scope, open_scope

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the finished and the total number of files or items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a run that change its report.

    Attributes:
        top: Number of found standards for an item.
        auto: Precision at which pairs are accepted without a person; None accepts none.
        split: See `inputs.ItemReader`.
    """

    grade: str = ""
    subject: str = ""
    jurisdiction: str = ""
    standard_set: str = ""
    top: int = 3
    auto: float | None = None
    split: Split = "file"


_SEARCHED: Final = ("grade", "subject", "jurisdiction", "standard_set", "top")
"""The options that change the correlation of an item."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files of a run that can be read, and the skipped ones with the reasons."""

    files: Sequence[InputFile]
    skipped: Sequence[SkippedFile]


def read_inputs(
    paths: Sequence[Path], split: Split, progress: Progress, own_files: Sequence[Path] = ()
) -> Inputs:
    """Read the files that the paths name, see `inputs.find_files`.

    Args:
        own_files: The report and the review file, which may be in a folder of lessons.
    """
    files, skipped = find_files(paths)
    own = {path.resolve() for path in own_files}
    files = [path for path in files if Path(os.path.realpath(path)) not in own]
    read: list[InputFile] = []
    with ItemReader(split) as reader:
        for done, path in enumerate(files):
            progress(done, len(files))
            result = reader.read(path)
            if isinstance(result, InputFile):
                read.append(result)
                skipped += result.skipped
            else:
                skipped.append(result)
        progress(len(files), len(files))
    return Inputs(read, skipped)


async def align(
    catalog: Catalog,
    inputs: Inputs,
    options: Options,
    *,
    journal: Journal,
    decisions: Mapping[ReviewKey, Decision],
    progress: Progress,
) -> AlignmentReport:
    """Return the report of a run.

    Raises:
        InvalidInputError: An option names nothing in the catalog.
        CatalogError: The catalog cannot be read.
        OSError: The journal cannot be written.
    """
    scope = await open_scope(
        catalog,
        grade=options.grade,
        subject=options.subject,
        jurisdiction=options.jurisdiction,
        standard_set=options.standard_set,
    )
    calibration = load_calibration()
    input_digests = {file.name: file.sha256 for file in inputs.files}
    settings: dict[str, Any] = {**asdict(options), "calibration": calibration.sha256}
    provenance = await provenance_of(catalog, settings, input_digests)
    is_calibrated = provenance.model_name == calibration.model
    correlator = Correlator(catalog, scope, calibration if is_calibrated else None, options.top)
    least, notes = _least_probability(options.auto, calibration, is_calibrated=is_calibrated)
    decider = Decider(correlator, scope, decisions, least)
    searched = [settings[name] for name in (*_SEARCHED, "calibration")]
    made_from = [searched, provenance.catalog, provenance.model, provenance.version]

    items = [item for file in inputs.files for item in file.items]
    outcomes: list[Outcome] = []
    keys: dict[str, None] = {}
    for done, item in enumerate(items):
        progress(done, len(items))
        key = digest_of([item.digest, *made_from])
        correlation = journal.get(key)
        if correlation is None:
            correlation = await correlator.correlate(item)
            journal.add(key, correlation)
        keys[key] = None
        outcomes.append(await decider.decide(item, correlation))
    progress(len(items), len(items))
    journal.keep_only(keys)
    notes += _mixed_jurisdictions(scope, items) + _unused_decisions(decisions, items)
    return AlignmentReport(outcomes, inputs.skipped, settings, provenance, notes)


def _least_probability(
    auto: float | None, calibration: Calibration, *, is_calibrated: bool
) -> tuple[float | None, list[str]]:
    """Return the least probability of a pair to accept, or None, and the reason for None."""
    if not is_calibrated:
        note = (
            f"Probabilities were measured with the model {calibration.model} only, so there are "
            "none here, and no pair is accepted automatically."
        )
        return None, [note]
    least = None if auto is None else calibration.least_probability(auto)
    if auto is not None and least is None:
        note = (
            f"No held-out pairs support a precision of {auto * 100:.12g}%, so no pair is accepted "
            "automatically."
        )
        return None, [note]
    return least, []


def _mixed_jurisdictions(scope: Scope, items: Sequence[Item]) -> list[str]:
    mixed = sum(scope.of(item).jurisdictions > 1 for item in items)
    note = (
        f"{counted(mixed, 'item')} of {len(items):,} were compared with the standards of several "
        "jurisdictions. Probabilities were measured within one, so nothing is accepted "
        "automatically for these items; add --jurisdiction, --set or --subject."
    )
    return [note] if mixed else []


def _unused_decisions(decisions: Mapping[ReviewKey, Decision], items: Sequence[Item]) -> list[str]:
    digests = {review_key(item.digest, "")[0] for item in items}
    unused = sum(item not in digests for item, _ in decisions)
    note = (
        f"The review file has {counted(unused, 'decision')} on items that have changed or were not "
        "read; they are kept there."
    )
    return [note] if unused else []
