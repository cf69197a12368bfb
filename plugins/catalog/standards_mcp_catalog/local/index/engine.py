"""Search and build the index: the part of the store that loads NumPy, tantivy and the model."""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import SecretStr
from tantivy import Occur, Query

from standards_mcp_catalog.base import Filter, Progress
from standards_mcp_catalog.errors import CatalogUnavailableError
from standards_mcp_catalog.local.database import Database
from standards_mcp_catalog.local.relations import stated_relations
from standards_mcp_catalog.records import chunks, passages
from standards_mcp_catalog.relations import MOST_SUCCESSORS, SUCCESSION
from standards_mcp_catalog.results import SearchHit, SearchResult
from standards_mcp_catalog.starter import starter_edition
from standards_mcp_catalog.vocabulary.subject_model import subject_probabilities
from standards_mcp_encoders.encoders import open_encoder
from standards_mcp_encoders.errors import EncoderUnavailableError
from standards_mcp_encoders.minilm import TextEncoder, Vectors, normalised
from standards_mcp_encoders.spec import API_KEY_VARIABLE, MINILM_NAME, is_minilm

from .columns import Selection, select
from .generation import Generation, make_current
from .generation import build as build_generation
from .lexical import MOST_WORDS, common_words
from .manifest import REBUILD, current_folder, pointer_stamp, read_manifest
from .ranking import WEAK_SCORE, Match, Mode, Ranker

_REMEDY = f"check [plugins.catalog.local] model and {API_KEY_VARIABLE}"


class Engine:
    """Searches the current index folder, and builds new index folders.

    Every method may raise `CatalogError`: the index cannot be read, or the encoder cannot be used.

    Args:
        index: The folder of all index folders, see `manifest`.
        model: Text encoder, see `standards_mcp_encoders.spec`.
        key: API key of the encoder, if it needs one.
    """

    def __init__(self, index: Path, model: str, key: SecretStr | None = None) -> None:
        self._index = index
        self._model = model
        self._key = key
        self._opening = threading.Lock()
        self._encoder: TextEncoder | EncoderUnavailableError | None = None
        self._generation: tuple[object, Generation] | None = None

    def search(
        self,
        database: Database,
        text: str,
        top_k: int,
        expression: Filter | None,
        named: Mapping[str, str],
        mode: Mode,
    ) -> SearchResult:
        """Return the best records for *text*, after the records with the ids in *named*.

        Args:
            named: Codes in the text, by the ids of their records.
            mode: ``lexical`` searches by words only and ``dense`` by vectors only, for benchmarks.
        """
        generation = self._open_index()
        selection = without_replaced(_select(expression, generation), generation)
        if not text.strip():
            return SearchResult(hits=())
        encoder, notes = self._query_encoder(generation) if mode != "lexical" else (None, ())

        def ranker_of(text: str) -> tuple[Ranker, Vectors | None]:
            words = None if mode == "dense" else text
            vectors = None if encoder is None else encoder.encode(passages(text))
            return Ranker(generation, selection, text=words, vectors=vectors), vectors

        ranker, vectors = ranker_of(text)
        read_as = ""
        if mode == "hybrid" and (corrected := generation.spelling.corrected(text)) != text:
            corrected_ranker, corrected_vectors = ranker_of(corrected)
            if corrected_ranker.fits_better_than(ranker):
                ranker, vectors, read_as = corrected_ranker, corrected_vectors, corrected
        rows = rows_of(generation, selection, named)
        depth = max(top_k, _MIN_REORDERED)
        matches = with_named_first(rows, ranker.best(depth + len(rows)), depth)
        if not generation.heights[[match.row for match in matches[:top_k]]].any():
            matches = matches[:top_k]  # without headings among them, their order is final
        hits = list(hits_of(database, generation, matches))
        hits[len(rows) :] = standards_first(hits[len(rows) :])
        notes = (*notes, *_outdated_notes(generation, database))
        hits = with_reasons(hits[:top_k], ranker, named, read_as or text)
        result = SearchResult(
            hits=tuple(with_successors(database, hits)), notes=notes, read_as=read_as
        )
        if encoder is None or vectors is None or encoder.name != MINILM_NAME:
            return result
        subjects = subject_probabilities(vectors[0])
        return replace(result, weak_below=WEAK_SCORE, subjects=subjects)

    def select(self, expression: Filter, limit: int) -> list[str]:
        """Return the ids of the first *limit* records that pass a filter."""
        generation = self._open_index()
        ids = generation.ids()
        mask = _select(expression, generation).mask
        if mask is None:
            return ids[:limit]
        return [ids[row] for row in np.flatnonzero(mask)[:limit].tolist()]

    def values(self, name: str) -> dict[str, int]:
        """Return the texts that a field has, each with its number of records."""
        column = self._open_index().columns.get(name)
        return {} if column is None else column.counts()

    def update(self, database: Database, progress: Progress | None) -> None:
        """Build the index unless it fits the state of *database*, the starter set and the model."""
        try:
            manifest = read_manifest(current_folder(self._index))
            state = database.revision, self.model_name(), starter_edition()
            if (manifest.revision, manifest.model, manifest.edition) == state:
                return
        except CatalogUnavailableError:
            pass  # without a readable index, a new one is built
        self.build(database, progress)

    def build(self, database: Database, progress: Progress | None) -> None:
        """Embed the texts that have no vector yet, and build a new index folder."""
        make_current(self.prepare(database, progress))

    def prepare(self, database: Database, progress: Progress | None) -> Path:
        """Build a new index folder as `build` does, and return it; searches do not use it yet."""
        encoder = self._open_encoder()
        if isinstance(encoder, EncoderUnavailableError):
            return build_generation(database, self._index, None, 0)
        embed_missing(database, encoder, progress)
        return build_generation(database, self._index, encoder.name, encoder.dimensions)

    def check(self, database: Database) -> tuple[str, ...]:
        """Open all parts of a search, and return the notes that a search would have."""
        generation = self._open_index()
        _, notes = self._query_encoder(generation)
        return (*notes, *_outdated_notes(generation, database))

    def check_encoder(self) -> tuple[str, ...]:
        """Open the text encoder, and return the note that a search without it would have."""
        encoder = self._open_encoder()
        return (_words_only_note(encoder),) if isinstance(encoder, EncoderUnavailableError) else ()

    def model_name(self) -> str | None:
        """Return the name of the text encoder, or None if searches go by words only."""
        encoder = self._open_encoder()
        return None if isinstance(encoder, EncoderUnavailableError) else encoder.name

    def close(self) -> None:
        """Release the index; the next search opens it again."""
        self._generation = None

    def _open_encoder(self) -> TextEncoder | EncoderUnavailableError:
        with self._opening:
            if self._encoder is None:
                try:
                    self._encoder = open_encoder(self._model, self._key, remedy=_REMEDY)
                except EncoderUnavailableError as error:
                    self._encoder = error
            return self._encoder

    def _open_index(self) -> Generation:
        """Return the current generation, and open it if another build has become current."""
        # The stamp is taken before the folder is opened. If another folder becomes current in
        # between, the next call sees a new stamp; in the other order, it could miss the new folder.
        stamp = pointer_stamp(self._index)
        last = self._generation  # read once, since another thread may replace it
        if last is not None and last[0] == stamp:
            return last[1]
        with self._opening:
            opened = Generation(current_folder(self._index))
            self._generation = stamp, opened
            return opened

    def _query_encoder(self, generation: Generation) -> tuple[TextEncoder | None, tuple[str, ...]]:
        encoder, indexed = self._open_encoder(), generation.manifest.model
        if isinstance(encoder, EncoderUnavailableError):
            return None, (_words_only_note(encoder),)
        if indexed is None:
            return None, (f"Searched by words only: the index has no vectors; {REBUILD}.",)
        if indexed != encoder.name:
            # The built-in encoder of an earlier version is no model that a setting can name.
            is_former = is_minilm(indexed) and encoder.name == MINILM_NAME
            raise CatalogUnavailableError(
                f"the index at {generation.folder} was built with the model {indexed!r}, and the "
                f"configured one is {encoder.name!r}; {REBUILD}"
                + ("" if is_former else ", or set [plugins.catalog.local] model")
            )
        return encoder, ()


def _select(expression: Filter | None, opened: Generation) -> Selection:
    return select(expression, opened.columns, opened.lexical, opened.manifest.records)


def _words_only_note(error: EncoderUnavailableError) -> str:
    return f"Searched by words only: {error}."


def _outdated_notes(generation: Generation, database: Database) -> tuple[str, ...]:
    if generation.manifest.revision == database.revision:
        return ()
    note = (
        "The latest changes of the standards cannot be searched yet: an import is running or "
        f"was interrupted. If no import is running, {REBUILD}."
    )
    return (note,)


def rows_of(generation: Generation, selection: Selection, ids: Iterable[str]) -> list[int]:
    """Return the rows of the records with these *ids* that are in *selection*."""
    indexed, rows = generation.ids(), list[int]()
    for id_ in ids:
        row = bisect_left(indexed, id_)
        present = row < len(indexed) and indexed[row] == id_
        if present and (selection.mask is None or selection.mask[row]):
            rows.append(row)
    return rows


def without_replaced(selection: Selection, generation: Generation) -> Selection:
    """Return *selection* without the paraphrases of standards whose official text it has."""
    rows, officials = generation.replaced.T
    if selection.mask is not None:
        rows = rows[selection.mask[rows] & selection.mask[officials]]
    if not rows.size:
        return selection
    mask = np.ones(generation.manifest.records, np.bool_)
    query = Query.all_query()
    if selection.mask is not None and selection.query is not None:
        mask, query = selection.mask.copy(), selection.query
    mask[rows] = False
    clauses = [(Occur.Must, query), (Occur.MustNot, generation.lexical.rows_query(rows))]
    return Selection(mask, Query.boolean_query(clauses))


def with_named_first(named: list[int], matches: list[Match], top_k: int) -> list[Match]:
    """Return the *top_k* best matches, beginning with the *named* rows, with score 1."""
    first = [Match(row, 1.0, []) for row in named]
    rest = [match for match in matches if not {match.row, *match.others} & set(named)]
    return (first + rest)[:top_k]


# A standard helps people more than the group that it is in. To move every record that has parts
# made results worse in frameworks whose standards have parts (docs/benchmarks.md).
_GROUP = re.compile("domain|cluster|strand|core idea", re.IGNORECASE)
_MIN_SHARE = 0.5
"""A standard with at least this share of the score of its group comes before the group."""
_MIN_REORDERED = 20
"""Minimum number of the best hits that are compared with their groups."""


def standards_first(hits: Sequence[SearchHit]) -> list[SearchHit]:
    """Return *hits* with each group, such as a cluster, moved behind its best standard.

    A group stays if its best standard has less than half its score.
    """
    best = dict[str, float]()
    for hit in hits:
        for ancestor in hit.record.ancestor_ids:
            best[ancestor] = max(best.get(ancestor, 0), hit.score)

    ordered = list[tuple[SearchHit, bool]]()
    for hit in hits:
        score = best.get(hit.record.id, 0) if _GROUP.search(hit.record.statement_label or "") else 0
        is_moved = hit.score * _MIN_SHARE <= score < hit.score
        # A moved group gets the score of the standard, so that scores fall along the list.
        ordered.append((replace(hit, score=score) if is_moved else hit, is_moved))
    ordered.sort(key=lambda item: (-item[0].score, item[1]))
    return [hit for hit, _ in ordered]


def hits_of(
    database: Database, generation: Generation, matches: Sequence[Match]
) -> Iterator[SearchHit]:
    """Yield the hits of *matches* without the records that were deleted after the build."""
    ids = generation.ids()
    wanted = {ids[row] for match in matches for row in (match.row, *match.others)}
    records = {record.id: record for record in database.fetch(sorted(wanted))}
    for match in matches:
        if record := records.get(ids[match.row]):
            twins = (records.get(ids[row]) for row in match.others)
            yield SearchHit(
                record=record,
                score=round(match.score, 4),
                also_in=tuple(twin for twin in twins if twin is not None),
            )


def with_reasons(
    hits: Sequence[SearchHit], ranker: Ranker, named: Mapping[str, str], text: str
) -> list[SearchHit]:
    """Return *hits* with their `SearchHit.why`."""
    ids = [hit.record.id for hit in hits]
    reasons = [shortened(named.get(id_) or ranker.phrase(id_)) for id_ in ids]
    others = [hit.record for hit, reason in zip(hits, reasons, strict=True) if not reason]
    words = common_words(text, others)
    return [
        replace(hit, why=reason or ", ".join(next(words)))
        for hit, reason in zip(hits, reasons, strict=True)
    ]


_CLAUSES = re.compile(r".{20,}(?:[?!]|(?=[,;:.](?: |$)))")


def shortened(phrase: str) -> str:
    """Return the whole clauses in the first ten words of a phrase, or else these words."""
    words = phrase.split()
    if len(words) <= MOST_WORDS:
        return phrase
    beginning = " ".join(words[:MOST_WORDS])
    clauses = _CLAUSES.match(beginning)
    return clauses[0] if clauses else f"{beginning} ..."


def with_successors(database: Database, hits: Sequence[SearchHit]) -> Iterator[SearchHit]:
    """Yield *hits* with the successors of their records, which the answer names."""
    records = [hit.record for hit in hits]
    successors = stated_relations(database, records, SUCCESSION, MOST_SUCCESSORS)
    for hit, replaced_by in zip(hits, successors, strict=True):
        yield replace(hit, replaced_by=replaced_by)


_BATCH = 512


def embed_missing(
    database: Database, encoder: TextEncoder, progress: Progress | None = None
) -> None:
    """Embed the texts of *database* that *encoder* has not embedded yet.

    Vectors are saved batch by batch, so that an interrupted run goes on where it stopped.

    Args:
        progress: Called with (done, total) after each batch.
    """
    texts, done = database.texts_without_vector(encoder.name), 0
    for batch in chunks(texts, _BATCH):
        vectors = encoder.encode([text for _, text in batch])
        save_vectors(database, encoder.name, [hash_ for hash_, _ in batch], vectors)
        done += len(batch)
        if progress is not None:
            progress(done, len(texts))


def save_vectors(
    database: Database, model: str, hashes: Iterable[str], vectors: npt.ArrayLike
) -> None:
    """Save the vectors of texts, shape (texts, dimensions), under the hashes of the texts."""
    pairs = zip(hashes, normalised(vectors).astype("<f4"), strict=True)
    database.add_vectors(model, [(hash_, row.tobytes()) for hash_, row in pairs])
