"""Find loaded standards by the names that people give: grade, subject, jurisdiction, set."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from standards_mcp import FilterExpression, InvalidInputError, NotFoundError
from standards_mcp_catalog import Catalog, StandardRecord, StandardSet
from standards_mcp_catalog.sets import without_replaced
from standards_mcp_catalog.vocabulary.families import family_of_place
from standards_mcp_catalog.vocabulary.grades import (
    UnknownGradeError,
    parse_grades,
    spoken_levels,
)
from standards_mcp_catalog.vocabulary.names import (
    JurisdictionNameError,
    folded,
    jurisdictions_meant,
    jurisdictions_named,
    place_named,
    quoted,
    titles_like,
)
from standards_mcp_catalog.vocabulary.notation import canonical_key
from standards_mcp_catalog.vocabulary.subjects import match_subjects, nearest_subjects

_MOST_LISTED: Final = 6
_HIGH_SCHOOL: Final = frozenset(("09", "10", "11", "12"))


def one_grade(text: str) -> tuple[str, ...]:
    """Return the level of one grade, or the levels of high school, whose courses have several.

    Raises:
        InvalidInputError: The text is no grade, or names several.
    """
    try:
        levels = parse_grades(text)
    except UnknownGradeError as error:
        raise InvalidInputError(str(error)) from None
    if len(levels) > 1 and not _HIGH_SCHOOL.issuperset(levels):
        raise InvalidInputError(
            f"grade names {len(levels)} grades ({spoken_levels(levels)}). Pass one grade, such as "
            f"'{spoken_levels(levels[-1:])}', and call again for each of the others. Only grades "
            "of high school, such as '9-12', are taken together."
        )
    return levels


async def subjects_named(catalog: Catalog, text: str) -> tuple[str, ...]:
    """Return the loaded subjects that a text names.

    Raises:
        InvalidInputError: No loaded standard has this subject.
    """
    available = (await catalog.facets()).subjects
    if not available:
        raise InvalidInputError("The catalog is empty. Fill it with `standards-mcp data import`.")
    if found := match_subjects(text, available):
        return found
    close = nearest_subjects(text, available)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise InvalidInputError(
        f"No standards of the subject {quoted(text)} are loaded.{hint} Subjects here: "
        f"{listed(sorted(available))}. The operator can load more with `standards-mcp data import "
        "--from-api csp --jurisdiction STATE`."
    )


def jurisdiction_titles(text: str, sets: Sequence[StandardSet]) -> list[str]:
    """Return the titles of the jurisdiction that a name or an id means.

    Raises:
        InvalidInputError: It is not loaded, or the name is ambiguous.
    """
    wanted = folded(text)
    by_id = {each.jurisdiction_title for each in sets if folded(each.jurisdiction_id) == wanted}
    if by_id:
        return sorted(by_id)
    try:
        return jurisdictions_meant(text, {each.jurisdiction_title for each in sets})
    except JurisdictionNameError as error:
        raise InvalidInputError(str(error)) from None


def sets_named(text: str, sets: Sequence[StandardSet]) -> list[StandardSet]:
    """Return the set with this id, or the sets with this title, in any case and punctuation."""
    wanted = folded(text)
    by_id = [each for each in sets if folded(each.id) == wanted]
    return by_id or [each for each in sets if wanted and folded(each.title) == wanted]


def one_set(text: str, sets: Sequence[StandardSet]) -> StandardSet:
    """Return the set with this id or title.

    Raises:
        NotFoundError: No set is called so.
        InvalidInputError: Several sets are called so.
    """
    found = sets_named(text, sets)
    if not found:
        raise unknown_set(text, sets)
    if len(found) > 1:
        raise InvalidInputError(
            f"{len(found)} sets are called {quoted(text)}. Pass the id of one: {set_names(found)}."
        )
    return found[0]


def unknown_set(text: str, sets: Sequence[StandardSet]) -> NotFoundError:
    """Return the error for a set or a place that is not loaded, with the next step."""
    if place := place_named(text):
        command = family_of_place(place).source
        return NotFoundError(
            f"No standards of {place} are loaded. The operator can load them: {command}."
        )
    titles = titles_like(text, {each.title for each in sets})
    near = [each for each in sets if each.title in titles]
    hint = f" Similar: {set_names(near)}." if near else ""
    return NotFoundError(
        f"No standard set here is called {quoted(text)}.{hint} browse_standards, or "
        "`standards-mcp data sets`, lists the loaded sets with their ids."
    )


def set_names(sets: Iterable[StandardSet]) -> str:
    """Return ids of sets with their titles, for a sentence."""
    return listed([f"{each.id} ({each.title})" for each in sets])


def in_sets(set_ids: Sequence[str]) -> FilterExpression:
    """Return the filter for the standards of these sets."""
    # A standard in several sets has a main set and others.
    alternatives: list[dict[str, Any]] = [
        {"standard_set_id": {"$in": list(set_ids)}},
        {"also_in_set_ids": {"$in": list(set_ids)}},
    ]
    return {"$or": alternatives}


def without_paraphrases(records: Sequence[StandardRecord]) -> list[StandardRecord]:
    """Return *records* without paraphrases of standards whose official text is among them."""
    by_code = dict[str, list[StandardRecord]]()
    for record in records:
        by_code.setdefault(canonical_key(record.statement_notation or ""), []).append(record)
    kept = {
        record.id
        for code, group in by_code.items()
        for record in (without_replaced(group) if code else group)
    }
    return [record for record in records if record.id in kept]


def paraphrase_notes(records: Iterable[StandardRecord]) -> list[str]:
    """Return the note that texts are paraphrases, if some are."""
    if all(record.text_status != "paraphrase" for record in records):
        return []
    return [
        "Texts of standards are paraphrases here, not the official wording; say so if you quote."
    ]


def place_and_rest(text: str, titles: Collection[str]) -> tuple[list[str], str]:
    """Return the jurisdiction at the beginning of a text, and the rest, such as a year.

    ``Aland 2018`` is the jurisdiction Aland and ``2018``. The list is empty if no beginning of the
    text names a jurisdiction.
    """
    words = text.split()
    for count in range(len(words), 0, -1):
        if found := jurisdictions_named(" ".join(words[:count]), titles):
            return found, " ".join(words[count:])
    return [], text


def listed(names: Sequence[str]) -> str:
    """Return the first names of a list, and how many more there are."""
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
