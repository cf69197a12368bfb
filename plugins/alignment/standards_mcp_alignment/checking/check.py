"""Check a lesson: find its codes, judge them, and suggest standards for the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from standards_mcp_alignment.provenance import digest_of
from standards_mcp_catalog import Catalog, SearchHit
from standards_mcp_catalog.relations import Retirement, retirements

from . import passages
from .envelope import (
    STATUSES,
    AlignmentCheck,
    Assumed,
    CheckedCatalog,
    CheckedCode,
    Nearest,
    Suggestion,
)
from .finding import Candidate, candidates
from .judging import Verdict, judge
from .nearest import (
    LONGEST_SHOWN,
    Searcher,
    hits_without_codes,
    near_as,
    nearest_of_unknown,
    shortened,
    suggestion,
)
from .passages import Passage
from .quotations import Quotation, find_quotation
from .resolving import Resolved, resolve, resolve_codes
from .scope import Scope, read_scope
from .transcript import Transcript, transcribe

MOST_CODES: Final = 200
_MOST_SUCCESSORS: Final = 4
_LONGEST_DESCRIPTION: Final = 240


@dataclass(frozen=True, slots=True)
class _Lesson:
    """A lesson that is checked.

    Attributes:
        codes: Its codes in their order, then the codes of a list, without positions.
        retired: Retirements, by the ids of retired records.
        quotations: Quotations next to the codes, by code and id of the record.
        is_cut: True if the lesson has more texts that look like codes.
    """

    catalog: Catalog
    scope: Scope
    transcript: Transcript
    codes: Sequence[Resolved]
    retired: Mapping[str, Retirement]
    quotations: Mapping[tuple[Candidate, str], Quotation]
    is_cut: bool


async def check(
    catalog: Catalog,
    text: str,
    codes: str,
    grade: str | None,
    subject: str | None,
    jurisdiction: str | None,
) -> AlignmentCheck:
    """Return the status of each code in a lesson and in a list of codes.

    Raises:
        InvalidInputError: The grade, the subject or the jurisdiction does not exist.
        CatalogError: The catalog cannot be read.
    """
    lesson = await _read(catalog, text, codes, (grade, subject, jurisdiction))
    searcher = Searcher(catalog, lesson.scope)
    suggestions, quoted = await _without_codes(lesson, searcher)
    nearest = await nearest_of_unknown(searcher, lesson.transcript, lesson.codes)
    entries = [_entry(lesson, each, nearest.get(each.candidate.asked, [])) for each in lesson.codes]
    entries = sorted((*entries, *quoted), key=lambda each: each.get("start", len(text)))
    entries = _merged(entries)
    counts = Counter(entry["status"] for entry in entries)
    return {
        "success": True,
        "message": " ".join(_sentences(lesson, entries)),
        "codes": entries,
        "suggestions": suggestions,
        "counts": {status: counts[status] for status in STATUSES if counts[status]},
        "assumed": _assumed(lesson.scope),
        "catalog": await _facts(catalog),
        "input_digest": digest_of(f"{text}\0{codes}"),
    }


async def _read(
    catalog: Catalog, text: str, codes: str, limits: tuple[str | None, str | None, str | None]
) -> _Lesson:
    """Return the lesson with its codes looked up.

    Args:
        limits: The grade, the subject and the jurisdiction of the call.
    """
    transcript = transcribe(text)
    found = list(islice(candidates(transcript.text), MOST_CODES + 1))
    scope = await read_scope(catalog, passages.without(transcript.text, found), *limits)
    in_text = await resolve(catalog, found[:MOST_CODES], scope)
    listed = await resolve_codes(catalog, codes, scope) if codes else []
    records = [record for each in (*in_text, *listed) for record in each.records]
    quotations = passages.quotations(
        transcript.text, {each.candidate: each.records for each in in_text}
    )
    retired = await retirements(catalog, records)
    return _Lesson(
        catalog,
        scope,
        transcript,
        (*in_text, *listed),
        retired,
        quotations,
        len(found) > MOST_CODES,
    )


def _entry(lesson: _Lesson, code: Resolved, nearest: list[Nearest]) -> CheckedCode:
    candidate = code.candidate
    entry: CheckedCode
    if code.records and not code.missing_family:
        quotations = {
            record.id: lesson.quotations[candidate, record.id]
            for record in code.records
            if (candidate, record.id) in lesson.quotations
        }
        verdict = judge(code.records, lesson.scope, lesson.retired, quotations, code.place)
        entry = _entry_of(verdict, candidate.text, lesson.retired)
    else:
        entry = {
            "code": candidate.text, "written": candidate.text, "status": "unknown",
            "note": "no standard that is loaded here has this code", "nearest": nearest,
        }  # fmt: skip
        if family := code.missing_family:
            entry["status"] = "not_loaded"
            entry["note"] = f"{family.name} are not loaded here; to load them: {family.source}"
            entry["nearest"] = [near_as(each, "spelling") for each in code.records[:1]]
    if candidate.end:
        entry["start"], entry["end"] = lesson.transcript.span(candidate.start, candidate.end)
    return entry


def _entry_of(verdict: Verdict, written: str, retired: Mapping[str, Retirement]) -> CheckedCode:
    record, quotation = verdict.record, verdict.quotation
    entry: CheckedCode = {
        "code": record.statement_notation or record.id,
        "written": written,
        "status": verdict.status,
        "note": verdict.note,
        "nearest": [],
        "_id": record.id,
        "description": shortened(record.description, _LONGEST_DESCRIPTION),
        "education_levels": list(record.education_levels),
        "subject": record.subject,
        "jurisdiction_title": record.jurisdiction_title,
    }
    if record.text_status:
        entry["text_status"] = record.text_status
    if verdict.status == "retired":
        successors = [each.record for each in retired[record.id].successors if each.record]
        entry["nearest"] = [near_as(each, "successor") for each in successors[:_MOST_SUCCESSORS]]
    if quotation and quotation.diff:
        entry["diff"] = quotation.diff
    elif quotation:
        entry["quote"] = "exact" if quotation.is_whole else "part"
    return entry


async def _without_codes(
    lesson: _Lesson, searcher: Searcher
) -> tuple[list[Suggestion], list[CheckedCode]]:
    """Return standards for passages without a code, and the standards that such passages quote."""
    taken = [(each.candidate.start, each.candidate.end) for each in lesson.codes]
    taken += [(each.start, each.end) for each in lesson.quotations.values()]
    cited = {record.id for each in lesson.codes for record in each.records}
    suggestions, quoted = list[Suggestion](), list[CheckedCode]()
    for part, hits in await hits_without_codes(searcher, lesson.transcript, taken):
        if entry := await _quoted(lesson, part, hits):
            quoted.append(entry)
        else:
            suggestions += suggestion(lesson.transcript, part, hits, cited)
    return suggestions, quoted


async def _quoted(lesson: _Lesson, part: Passage, hits: Sequence[SearchHit]) -> CheckedCode | None:
    """Return the standard whose official text a passage without a code quotes, or None."""
    for hit in hits:
        found = {
            record.id: (record, quotation)
            for record in (hit.record, *hit.also_in)
            if record.text_status == "official"
            and (quotation := find_quotation(record.description, part.text, is_after_code=False))
        }
        if not found:
            continue
        records = [record for record, _ in found.values()]
        retired = await retirements(lesson.catalog, records)
        quotations = {id_: quotation for id_, (_, quotation) in found.items()}
        verdict = judge(records, lesson.scope, retired, quotations)
        quotation = quotations[verdict.record.id]
        start, end = part.start + quotation.start, part.start + quotation.end
        written = shortened(lesson.transcript.text[start:end], LONGEST_SHOWN)
        entry = _entry_of(verdict, written, retired)
        entry["start"], entry["end"] = lesson.transcript.span(start, end)
        return entry
    return None


def _merged(entries: Sequence[CheckedCode]) -> list[CheckedCode]:
    """Join the repetitions of a code, with the positions of all."""
    merged = dict[tuple[str, ...], CheckedCode]()
    for entry in entries:
        key = (entry["written"], entry["code"], entry["note"], entry.get("diff", ""))
        first = merged.setdefault(key, entry)
        if first is not entry and "start" in entry and "end" in entry:
            first.setdefault("repeated", []).append([entry["start"], entry["end"]])
    return list(merged.values())


def _assumed(scope: Scope) -> Assumed:
    assumed: Assumed = {}
    if scope.levels and scope.grade_source:
        assumed["grade"], assumed["grade_source"] = scope.grades, scope.grade_source
    if scope.subject:
        assumed["subject"] = scope.subject
    if scope.jurisdiction:
        assumed["jurisdiction"] = scope.jurisdiction
    return assumed


def _sentences(lesson: _Lesson, entries: Sequence[CheckedCode]) -> Iterator[str]:
    count = len(entries)
    problems = sum(entry["status"] != "ok" for entry in entries)
    if count:
        codes = "code" if count == 1 else "codes"
        yield f"Checked {count} {codes}: {problems or 'none'} with a problem."
    else:
        yield "Found no codes of standards."
    yield from _sentences_on_scope(lesson.scope)
    if any(entry.get("text_status") == "paraphrase" for entry in entries):
        yield (
            "Where text_status is paraphrase, the official wording is not loaded, so quotations "
            "were not compared."
        )
    if lesson.transcript.has_directions:
        yield (
            "The text has characters that change its direction; they were ignored, and codes may "
            "look different on a screen."
        )
    if lesson.is_cut:
        yield (
            f"Only the first {MOST_CODES} texts that look like codes were checked; send the rest "
            "in a further call."
        )


def _sentences_on_scope(scope: Scope) -> Iterator[str]:
    if scope.grade_source == "text":
        yield (
            f"The lesson states grade {scope.grades}, so the codes were compared with it; pass "
            "grade='any' to ignore it."
        )
    elif not scope.levels:
        yield "Without a grade, none of the codes can have a wrong one; pass grade if it is known."
    if family := scope.missing_family:
        name = family.name[0].upper() + family.name[1:]
        yield f"{name} are not loaded here; to load them: {family.source}."
    if scope.subject and not scope.subjects:
        yield f"No standards of {scope.subject} are loaded here."


async def _facts(catalog: Catalog) -> CheckedCatalog:
    stats = await catalog.stats()
    facts: CheckedCatalog = {"backend": stats.backend, "records": stats.records}
    if changed := stats.details.get("changed"):
        facts["changed"] = str(changed)
    return facts
