"""Search and building: the half of the embedded store that loads NumPy, tantivy and the model."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import SecretStr

from standards_mcp.filters import FilterExpression
from standards_mcp_catalog.base import Progress, SearchResult
from standards_mcp_catalog.errors import CatalogUnavailableError
from standards_mcp_catalog.local.database import Database
from standards_mcp_catalog.local.vectors import embed_missing
from standards_mcp_catalog.texts import passages
from standards_mcp_encoders.encoders import open_encoder
from standards_mcp_encoders.errors import EncoderUnavailableError
from standards_mcp_encoders.minilm import (
    MINILM_NAME,
    TextEncoder,
)

from . import generation
from .generation import Generation
from .manifest import REBUILD, current_folder, pointer_stamp, read_manifest
from .masks import select
from .ranking import WEAK_SCORE, Mode, Ranker
from .results import hits_of, rows_of, with_named_first, without_replaced


class Engine:
    """Searches the index folder that serves, and builds new ones.

    Every method may raise `CatalogError`: the index cannot be read, or the encoder not be used.

    Args:
        index: The folder of all index folders, see `manifest`.
        model: Which text encoder to use, see `standards_mcp_encoders.spec`.
        key: The key of the encoder, where it needs one.
    """

    def __init__(self, index: Path, model: str, key: SecretStr | None = None) -> None:
        self._index = index
        self._model = model
        self._key = key
        self._opening = threading.Lock()
        self._encoder: TextEncoder | EncoderUnavailableError | None = None
        self._serving: tuple[object, Generation] | None = None

    def search(
        self,
        database: Database,
        text: str,
        top_k: int,
        expression: FilterExpression | None,
        named: Sequence[str],
        mode: Mode,
    ) -> SearchResult:
        """Return the best records for *text*, those with the ids in *named* first.

        Args:
            mode: ``lexical`` and ``dense`` use one half of the index, to compare them.
        """
        served = self._open_index()
        selection = select(expression, served.columns, served.lexical, served.manifest.records)
        selection = without_replaced(selection, served)
        if not text.strip():
            return SearchResult(hits=())
        encoder, notes = self._query_encoder(served) if mode != "lexical" else (None, ())
        words = None if mode == "dense" else text
        vectors = None if encoder is None else encoder.encode(passages(text))
        ranker = Ranker(served, selection, text=words, vectors=vectors)
        rows = rows_of(served, selection, named)
        matches = with_named_first(rows, ranker.best(top_k + len(rows)), top_k)
        hits = tuple(hits_of(database, served, matches))
        is_measured = encoder is not None and encoder.name == MINILM_NAME
        return SearchResult(
            hits=hits,
            notes=(*notes, *_outdated(served, database)),
            weak_below=WEAK_SCORE if is_measured else 0,
        )

    def select(self, expression: FilterExpression, limit: int) -> list[str]:
        """Return the ids of the first *limit* records that a filter lets through."""
        served = self._open_index()
        ids = served.ids()
        mask = select(expression, served.columns, served.lexical, served.manifest.records).mask
        if mask is None:
            return ids[:limit]
        return [ids[row] for row in np.flatnonzero(mask)[:limit].tolist()]

    def values(self, name: str) -> dict[str, int]:
        """Return the texts that a field has, each with its number of records."""
        column = self._open_index().columns.get(name)
        return {} if column is None else column.counts()

    def update(self, database: Database, progress: Progress | None) -> None:
        """Build the index unless it agrees with *database* and the model."""
        try:
            manifest = read_manifest(current_folder(self._index))
            encoder = self._open_encoder()
            model = None if isinstance(encoder, EncoderUnavailableError) else encoder.name
            if (manifest.revision, manifest.model) == (database.revision, model):
                return
        except CatalogUnavailableError:
            pass  # there is no index that could be read, which is why one is built
        self.build(database, progress)

    def build(self, database: Database, progress: Progress | None) -> None:
        """Embed what is not embedded yet and build the index anew."""
        encoder = self._open_encoder()
        if isinstance(encoder, EncoderUnavailableError):
            generation.build(database, self._index, None, 0)
            return
        embed_missing(database, encoder, progress)
        generation.build(database, self._index, encoder.name, encoder.dimensions)

    def check(self, database: Database) -> tuple[str, ...]:
        """Open everything that a search needs, and return the notes that it would have."""
        served = self._open_index()
        _, notes = self._query_encoder(served)
        return (*notes, *_outdated(served, database))

    def check_encoder(self) -> tuple[str, ...]:
        """Open the text encoder, and return the note that a search without it would have."""
        encoder = self._open_encoder()
        return (_words_only(encoder),) if isinstance(encoder, EncoderUnavailableError) else ()

    def close(self) -> None:
        """Let go of the index; the next search opens it again."""
        self._serving = None

    def _open_encoder(self) -> TextEncoder | EncoderUnavailableError:
        with self._opening:
            if self._encoder is None:
                try:
                    self._encoder = open_encoder(self._model, self._key)
                except EncoderUnavailableError as error:
                    self._encoder = error
            return self._encoder

    def _open_index(self) -> Generation:
        """Return the generation that serves, opened anew when another has taken over."""
        # The stamp is taken before the folder is opened. If another folder takes over in between,
        # the next call sees a new stamp and opens that one; the other order could miss it for good.
        stamp = pointer_stamp(self._index)
        serving = self._serving  # read once, since another thread may replace it
        if serving is not None and serving[0] == stamp:
            return serving[1]
        with self._opening:
            opened = Generation(current_folder(self._index))
            self._serving = stamp, opened
            return opened

    def _query_encoder(self, served: Generation) -> tuple[TextEncoder | None, tuple[str, ...]]:
        encoder, indexed = self._open_encoder(), served.manifest.model
        if isinstance(encoder, EncoderUnavailableError):
            return None, (_words_only(encoder),)
        if indexed is None:
            return None, (f"Searched by words only: the index has no vectors; {REBUILD}.",)
        if indexed != encoder.name:
            raise CatalogUnavailableError(
                f"the index at {served.folder} was built with the model {indexed!r}, and the "
                f"configured one is {encoder.name!r}; {REBUILD}, or set "
                "[plugins.catalog.local] model"
            )
        return encoder, ()


def _words_only(error: EncoderUnavailableError) -> str:
    return f"Searched by words only: {error}."


def _outdated(served: Generation, database: Database) -> tuple[str, ...]:
    if served.manifest.revision == database.revision:
        return ()
    note = (
        "The latest changes of the standards cannot be searched yet: an import is still at work "
        f"or was interrupted; when none is, {REBUILD}."
    )
    return (note,)
