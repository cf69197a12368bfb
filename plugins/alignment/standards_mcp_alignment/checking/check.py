"""Check a lesson: find its codes, judge them, and suggest standards for the rest."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from standards_mcp_catalog import Catalog, SearchHit, StandardRecord
from standards_mcp_catalog.records import without_surrogates
from standards_mcp_catalog.relations import Retirement, retirements

from . import passages
from .envelope import (
    STATUSES,
    AlignmentCheck,
    Assumed,
    CheckedCatalog,
    CheckedCode,
    Nearest,
    SuggestedStandard,
    Suggestion,
)
from .finding import Candidate, candidates
from .judging import Verdict, judge
from .quotations import Quotation, find_quotation
from .resolving import Resolved, nearest_by_spelling, resolve, resolve_codes
from .scope import Scope, read_scope
from .transcript import Transcript, transcribe

MOST_CODES: Final = 200
_MOST_UNKNOWN: Final = 8
"""So many unknown codes get the nearest codes by spelling."""
_MOST_BY_MEANING: Final = 3
"""So many of them also get the nearest standards by the words beside them: a search for each."""
_MOST_PASSAGES: Final = 3
_MOST_NEAREST: Final = 4
_MOST_SUGGESTED: Final = 3
_LONGEST_DESCRIPTION: Final = 240
_LONGEST_SHOWN: Final = 160


@dataclass(frozen=True, slots=True)
class _Lesson:
    """A lesson that is checked.

    Attributes:
        codes: Its codes in their order; of a list of codes, without positions.
        quotations: Quotations beside them, by code and id of the record.
    """

    catalog: Catalog
    scope: Scope
    transcript: Transcript
    codes: Sequence[Resolved]
    retired: dict[str, Retirement]
    quotations: dict[tuple[Candidate, str], Quotation]


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
    transcript = transcribe(text)
    every = candidates(transcript.text)
    words = passages.without(transcript.text, every)
    scope = await read_scope(catalog, words, grade, subject, jurisdiction)
    in_text = await resolve(catalog, every[:MOST_CODES], scope)
    listed = await resolve_codes(catalog, codes, scope) if codes else []
    records = [record for each in (*in_text, *listed) for record in each.records]
    quoted = passages.quotations(
        transcript.text, {each.candidate: each.records for each in in_text if each.records}
    )
    lesson = _Lesson(
        catalog, scope, transcript, in_text, await retirements(catalog, records), quoted
    )
    suggestions, quoted_codes = await _suggestions(lesson)
    entries = await _entries(lesson, [*in_text, *listed])
    entries = sorted((*entries, *quoted_codes), key=lambda each: each.get("start", len(text)))
    return _answer(
        lesson, _merged(entries), suggestions, await _facts(catalog), text, codes, len(every)
    )


async def _entries(lesson: _Lesson, resolved: Sequence[Resolved]) -> list[CheckedCode]:
    unknown = list({each.candidate.asked: each for each in resolved if not each.records}.values())
    nearest = await asyncio.gather(
        *(
            _nearest(lesson, each, by_meaning=index < _MOST_BY_MEANING)
            for index, each in enumerate(unknown[:_MOST_UNKNOWN])
            if each.missing_family is None
        )
    )
    compared = [each for each in unknown[:_MOST_UNKNOWN] if each.missing_family is None]
    by_code = {each.candidate.asked: found for each, found in zip(compared, nearest, strict=True)}
    return [_entry(lesson, each, by_code.get(each.candidate.asked, [])) for each in resolved]


def _entry(lesson: _Lesson, resolved: Resolved, nearest: list[Nearest]) -> CheckedCode:
    candidate = resolved.candidate
    if not resolved.records or resolved.missing_family:
        entry: CheckedCode = {
            "code": candidate.text, "written": candidate.text, "status": "unknown",
            "note": "no standard that is loaded here has this code", "nearest": nearest,
        }  # fmt: skip
        if family := resolved.missing_family:
            entry["status"] = "not_loaded"
            entry["note"] = f"{family.name} are not loaded here; to load them: {family.source}"
            entry["nearest"] = [_near(each, "spelling") for each in resolved.records[:1]]
    else:
        quotations = {
            record.id: quotation
            for record in resolved.records
            if (quotation := lesson.quotations.get((candidate, record.id)))
        }
        verdict = judge(resolved.records, lesson.scope, lesson.retired, quotations, resolved.place)
        entry = _entry_of(verdict, candidate.text, lesson.retired)
    if candidate.end:
        entry["start"], entry["end"] = lesson.transcript.span(candidate.start, candidate.end)
    return entry


def _entry_of(verdict: Verdict, written: str, retired: dict[str, Retirement]) -> CheckedCode:
    record, quotation = verdict.record, verdict.quotation
    entry: CheckedCode = {
        "code": record.statement_notation or record.id, "written": written, "status": verdict.status,
        "note": verdict.note, "nearest": [], "_id": record.id,
        "description": _shortened(record.description, _LONGEST_DESCRIPTION),
        "education_levels": list(record.education_levels), "subject": record.subject,
        "jurisdiction_title": record.jurisdiction_title,
    }  # fmt: skip
    if record.text_status:
        entry["text_status"] = record.text_status
    if verdict.status == "retired":
        successors = [each.record for each in retired[record.id].successors if each.record]
        entry["nearest"] = [_near(each, "successor") for each in successors[:_MOST_NEAREST]]
    if quotation and quotation.diff:
        entry["diff"] = quotation.diff
    elif quotation:
        entry["quote"] = "exact" if quotation.is_whole else "part"
    return entry


async def _nearest(lesson: _Lesson, resolved: Resolved, *, by_meaning: bool) -> list[Nearest]:
    """Return the standards that an unknown code may mean, the likeliest first."""
    candidate = resolved.candidate
    places = [each.candidate for each in lesson.codes]
    words = ""
    if by_meaning and candidate.end:
        words = passages.words_beside(lesson.transcript.text, candidate, places)
    spelled = await nearest_by_spelling(lesson.catalog, candidate.asked)
    if lesson.scope.jurisdictions:
        inside = lesson.scope.jurisdictions
        spelled.sort(key=lambda each: each.jurisdiction_title not in inside)
    hits = await _search(lesson, words) if words else []
    meant = {hit.record.id: hit.record for hit in hits}
    near = {each.id: each for each in spelled}
    both = [_near(each, "both") for id_, each in near.items() if id_ in meant]
    by_spelling = [_near(each, "spelling") for id_, each in near.items() if id_ not in meant]
    others = [_near(each, "meaning") for id_, each in meant.items() if id_ not in near]
    return [*both, *by_spelling[: _MOST_NEAREST - min(2, len(others)) - len(both)], *others[:2]]


async def _suggestions(lesson: _Lesson) -> tuple[list[Suggestion], list[CheckedCode]]:
    """Return standards for passages without a code, and the standards that these passages quote."""
    transcript = lesson.transcript
    taken = [(each.candidate.start, each.candidate.end) for each in lesson.codes]
    taken += [(each.start, each.end) for each in lesson.quotations.values()]
    parts = passages.without_codes(transcript.text, taken, _MOST_PASSAGES)
    results = await asyncio.gather(*(_search(lesson, each.text) for each in parts))
    cited = {record.id for each in lesson.codes for record in each.records}
    suggestions, quoted = list[Suggestion](), list[CheckedCode]()
    for part, hits in zip(parts, results, strict=True):
        entry = await _quoted(lesson, part, hits)
        if entry:
            quoted.append(entry)
            continue
        standards = [_suggested(hit) for hit in hits if hit.record.id not in cited]
        if standards:
            start, end = transcript.span(part.start, part.end)
            passage = _shortened(part.text.strip(), _LONGEST_SHOWN)
            suggestions.append(
                {"passage": passage, "start": start, "end": end, "standards": standards}
            )
    return suggestions, quoted


async def _quoted(
    lesson: _Lesson, part: passages.Passage, hits: Sequence[SearchHit]
) -> CheckedCode | None:
    """Return the standard whose official text a passage without a code quotes, if it does."""
    for hit in hits:
        records = [each for each in (hit.record, *hit.also_in) if each.text_status == "official"]
        found = {
            each.id: quotation
            for each in records
            if (quotation := find_quotation(each.description, part.text, is_after_code=False))
        }
        if found:
            retired = await retirements(lesson.catalog, records)
            verdict = judge(records, lesson.scope, retired, found)
            quotation = verdict.quotation or next(iter(found.values()))
            start, end = part.start + quotation.start, part.start + quotation.end
            written = _shortened(lesson.transcript.text[start:end], _LONGEST_SHOWN)
            entry = _entry_of(verdict, written, retired)
            entry["start"], entry["end"] = lesson.transcript.span(start, end)
            return entry
    return None


async def _search(lesson: _Lesson, text: str) -> list[SearchHit]:
    """Return the best standards for a passage, without weak ones."""
    result = await lesson.catalog.search(text, _MOST_SUGGESTED, lesson.scope.filter())
    return [hit for hit in result.hits if hit.score >= result.weak_below]


def _merged(entries: Sequence[CheckedCode]) -> list[CheckedCode]:
    """Join the repetitions of a code, with the positions of all."""
    merged = dict[tuple[str, ...], CheckedCode]()
    for entry in entries:
        key = (
            entry["written"],
            entry["code"],
            entry["status"],
            entry["note"],
            entry.get("diff", ""),
        )
        first = merged.setdefault(key, entry)
        if first is not entry and "start" in entry and "end" in entry:
            first.setdefault("repeated", []).append([entry["start"], entry["end"]])
    return list(merged.values())


def _answer(
    lesson: _Lesson,
    entries: list[CheckedCode],
    suggestions: list[Suggestion],
    facts: CheckedCatalog,
    text: str,
    codes: str,
    candidate_count: int,
) -> AlignmentCheck:
    scope = lesson.scope
    counts = Counter(entry["status"] for entry in entries)
    assumed: Assumed = {}
    if scope.levels and scope.grade_source:
        assumed["grade"], assumed["grade_source"] = scope.grades, scope.grade_source
    if scope.subject:
        assumed["subject"] = scope.subject
    if scope.jurisdiction:
        assumed["jurisdiction"] = scope.jurisdiction
    digest = hashlib.sha256(without_surrogates(f"{text}\0{codes}").encode()).hexdigest()
    return {
        "success": True,
        "message": " ".join(_sentences(lesson, entries, candidate_count)),
        "codes": entries,
        "suggestions": suggestions,
        "counts": {status: counts[status] for status in STATUSES if counts[status]},
        "assumed": assumed,
        "catalog": facts,
        "input_digest": digest,
    }


def _sentences(lesson: _Lesson, entries: Sequence[CheckedCode], candidate_count: int) -> list[str]:
    scope, count = lesson.scope, len(entries)
    wrong = sum(entry["status"] != "ok" for entry in entries)
    sentences = [
        f"Checked {count} {'code' if count == 1 else 'codes'}: {wrong or 'none'} with a problem."
        if count
        else "Found no codes of standards."
    ]
    if scope.grade_source == "text":
        sentences.append(
            f"The lesson states grade {scope.grades}, so the codes were compared with it; pass "
            "grade='any' to ignore it."
        )
    elif not scope.levels:
        sentences.append("The grade is not known, so no code has a wrong grade; pass grade.")
    if scope.missing_family:
        family = scope.missing_family
        sentences.append(f"{family.name} are not loaded here; to load them: {family.source}.")
    if scope.subject and not scope.subjects:
        sentences.append(f"No standards of {scope.subject} are loaded here.")
    if any(entry.get("text_status") == "paraphrase" for entry in entries):
        sentences.append(
            "Where text_status is paraphrase, the official wording is not loaded, so quotations "
            "were not compared."
        )
    if lesson.transcript.has_directions:
        sentences.append(
            "The text has characters that change its direction; they were ignored, and codes may "
            "look different on a screen."
        )
    if candidate_count > MOST_CODES:
        sentences.append(
            f"Only the first {MOST_CODES} texts that look like codes were checked, of "
            f"{candidate_count:,}; send the rest in a further call."
        )
    return [sentence[0].upper() + sentence[1:] for sentence in sentences]


async def _facts(catalog: Catalog) -> CheckedCatalog:
    stats = await catalog.stats()
    facts: CheckedCatalog = {"backend": stats.backend, "records": stats.records}
    if changed := stats.details.get("changed"):
        facts["changed"] = str(changed)
    return facts


def _near(record: StandardRecord, by: str) -> Nearest:
    return {
        "code": record.statement_notation or record.id,
        "_id": record.id,
        "description": _shortened(record.description, _LONGEST_SHOWN),
        "by": by,  # type: ignore[typeddict-item]
    }


def _suggested(hit: SearchHit) -> SuggestedStandard:
    record = hit.record
    return {
        "code": record.statement_notation or record.id,
        "_id": record.id,
        "description": _shortened(record.description, _LONGEST_SHOWN),
        "score": round(hit.score, 4),
    }


def _shortened(text: str, length: int) -> str:
    joined = " ".join(text.split())
    return joined if len(joined) <= length else f"{joined[: length - 4].rstrip()} ..."
