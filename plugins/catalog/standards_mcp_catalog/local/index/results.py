"""From a query to ranked rows and from rows to hits: what is not scoring."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from tantivy import Occur, Query

from standards_mcp_catalog.base import SearchHit
from standards_mcp_catalog.local.database import Database

from .generation import Generation
from .masks import Selection
from .ranking import Match


def rows_of(served: Generation, selection: Selection, ids: Iterable[str]) -> list[int]:
    """Return the rows of the records with these ids, those that the filter lets through."""
    known, rows = served.ids(), list[int]()
    for id_ in ids:
        row = bisect_left(known, id_)
        present = row < len(known) and known[row] == id_
        if present and (selection.mask is None or selection.mask[row]):
            rows.append(row)
    return rows


def without_replaced(selection: Selection, served: Generation) -> Selection:
    """Return *selection* without rows of the starter set whose official text it selects, too."""
    rows, officials = served.replaced.T
    if selection.mask is not None:
        rows = rows[selection.mask[rows] & selection.mask[officials]]
    if not rows.size:
        return selection
    mask = np.ones(served.manifest.records, np.bool_)
    query = Query.all_query()
    if selection.mask is not None and selection.query is not None:
        mask, query = selection.mask.copy(), selection.query
    mask[rows] = False
    clauses = [(Occur.Must, query), (Occur.MustNot, served.lexical.rows_query(rows))]
    return Selection(mask, Query.boolean_query(clauses))


def with_named_first(named: list[int], matches: list[Match], top_k: int) -> list[Match]:
    """Return the *top_k* best matches when the query is the code of the *named* rows."""
    first = [Match(row, 1.0, []) for row in named]
    rest = [match for match in matches if not {match.row, *match.others} & set(named)]
    return (first + rest)[:top_k]


def hits_of(
    database: Database, served: Generation, matches: Sequence[Match]
) -> Iterator[SearchHit]:
    """Yield the hits of *matches*; records deleted since the index was built are left out."""
    ids = served.ids()
    wanted = {ids[row] for match in matches for row in (match.row, *match.others)}
    records = {record.id: record for record in database.fetch(sorted(wanted))}
    for match in matches:
        if ids[match.row] in records:
            others = (records.get(ids[row]) for row in match.others)
            yield SearchHit(
                record=records[ids[match.row]],
                score=round(match.score, 4),
                also_in=tuple(other for other in others if other is not None),
            )
