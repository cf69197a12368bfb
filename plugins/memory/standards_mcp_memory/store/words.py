"""Word matching in an embedded store.

Sparse vectors in qdrant-client's local mode take 260 ms for 4,000 memories where vectors take 12 ms
(docs/benchmarks.md), so an embedded store has this index in memory. It is made from the payloads by
the first search after the store was opened.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from standards_mcp_memory.records import Document
from standards_mcp_memory.texts.words import word_numbers, word_weight, word_weights

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class WordIndex:
    """BM25 over the memories of one collection.

    Args:
        documents: The memories, by rising id.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        import numpy as np  # noqa: PLC0415  - a server without calls has none

        ids, words, lengths = array("q"), array("I"), array("q")
        for document in documents:
            known = len(words)
            words.extend(word_numbers(document.text))
            ids.append(document.id)
            lengths.append(len(words) - known)
        self._ids = np.array(ids, dtype=np.int64)
        every_row = np.repeat(np.arange(len(ids), dtype=np.uint64), lengths)
        # Sorted by word, then by row: the rows of a word are one slice.
        pairs, counts = np.unique(
            np.array(words, dtype=np.uint64) << np.uint64(32) | every_row, return_counts=True
        )
        self._rows = (pairs & np.uint64(2**32 - 1)).astype(np.int32)
        row_lengths = np.array(lengths, dtype=np.float32)[self._rows]
        self._weights = word_weight(counts.astype(np.float32), row_lengths).astype(np.float16)
        self._words, self._starts = np.unique(pairs >> np.uint64(32), return_index=True)
        self._is_current = np.ones(len(ids), dtype=bool)
        # Few memories change while a store is open, so these are searched one by one.
        self._changed: dict[int, dict[int, float]] = {}

    def put(self, document: Document) -> None:
        """Add a memory, or replace the one with its id."""
        self.remove(document.id)
        self._changed[document.id] = word_weights(document.text)

    def remove(self, identifier: int) -> None:
        """Remove a memory, if there is one with this id."""
        self._changed.pop(identifier, None)
        rows = self._rows_of([identifier])
        self._is_current[rows[rows < len(self._ids)]] = False

    def scores(self, words: Sequence[int], limit: int, others: Sequence[int]) -> dict[int, float]:
        """Return the scores of the best *limit* memories and of *others*, 0 if no word matches."""
        import numpy as np  # noqa: PLC0415  - as above

        total = np.zeros(len(self._ids) + 1, dtype=np.float32)  # the last is that of other ids
        changed = dict.fromkeys(self._changed, 0.0)
        count = int(self._is_current.sum()) + len(changed)
        for word in words:
            rows, weights = self._postings(word)
            holders = {each: held[word] for each, held in self._changed.items() if word in held}
            frequency = len(rows) + len(holders)
            rarity = math.log1p((count - frequency + 0.5) / (frequency + 0.5))
            total[rows] += rarity * weights
            for each, weight in holders.items():
                changed[each] += rarity * weight
        top = np.argpartition(-total, min(limit, len(self._ids)))[:limit]
        top = top[total[top] > 0]
        found: dict[int, float] = dict(
            zip(self._ids[top].tolist(), total[top].tolist(), strict=True)
        )
        found |= {each: score for each, score in changed.items() if score > 0}
        best = sorted(found, key=lambda each: (-found[each], each))[:limit]
        asked: dict[int, float] = dict(
            zip(others, total[self._rows_of(others)].tolist(), strict=True)
        )
        return {each: found[each] for each in best} | {
            each: changed.get(each, score) for each, score in asked.items()
        }

    def _rows_of(self, ids: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the rows of memories, the number of rows for ids that are in none."""
        import numpy as np  # noqa: PLC0415  - as above

        wanted = np.array(ids, dtype=np.int64)
        rows = np.searchsorted(self._ids, wanted)
        is_stored = (
            self._ids[np.minimum(rows, len(self._ids) - 1)] == wanted if len(self._ids) else False
        )
        return np.where(is_stored, rows, len(self._ids))

    def _postings(self, word: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
        import numpy as np  # noqa: PLC0415  - as above

        at = int(np.searchsorted(self._words, word))
        if at == len(self._words) or self._words[at] != word:
            return self._rows[:0], self._weights[:0]
        end = self._starts[at + 1] if at + 1 < len(self._starts) else len(self._rows)
        rows = self._rows[self._starts[at] : end]
        is_current = self._is_current[rows]
        weights = self._weights[self._starts[at] : end][is_current].astype(np.float32)
        return rows[is_current], weights
