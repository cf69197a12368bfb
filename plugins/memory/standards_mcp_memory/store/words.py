"""Word matching in an embedded store.

Sparse vectors in qdrant-client's local mode take 260 ms for 4,000 memories where vectors take 12 ms
(docs/benchmarks.md), so an embedded store has this index in memory. It is made from the payloads by
the first search after the store was opened.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from standards_mcp_memory.records import Document
from standards_mcp_memory.texts.words import Vocabulary, word_weight, word_weights

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_SHIFT: Final = 32


class WordIndex:
    """BM25 over the memories of one collection.

    Args:
        documents: The memories, by rising id.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        import numpy as np  # noqa: PLC0415  - a server without calls has none

        ids, words, ends, vocabulary = array("q"), array("I"), array("q"), Vocabulary()
        for document in documents:
            words.extend(vocabulary.places(document.text))
            ids.append(document.id)
            ends.append(len(words))
        self._ids = np.array(ids, dtype=np.int64)
        pairs, lengths = _pairs(words, ends, vocabulary.numbers())
        # Sorted by word, then by row: the rows of a word are one slice.
        pairs.sort()
        first = _first_of_equal(pairs)
        counts = np.diff(first, append=len(pairs)).astype(np.float32)
        pairs = pairs[first]
        row_type = np.min_scalar_type(len(ids))  # two bytes where they suffice: there are millions
        self._rows = (pairs & np.uint64(2**_SHIFT - 1)).astype(row_type)
        self._weights = word_weight(counts, lengths[self._rows]).astype(np.float16)
        pairs >>= np.uint64(_SHIFT)
        self._starts = _first_of_equal(pairs)
        self._words = pairs[self._starts]
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

    def _postings(self, word: int) -> tuple[npt.NDArray[np.unsignedinteger[Any]], npt.NDArray[Any]]:
        import numpy as np  # noqa: PLC0415  - as above

        at = int(np.searchsorted(self._words, word))
        if at == len(self._words) or self._words[at] != word:
            return self._rows[:0], self._weights[:0]
        end = self._starts[at + 1] if at + 1 < len(self._starts) else len(self._rows)
        rows = self._rows[self._starts[at] : end]
        is_current = self._is_current[rows]
        weights = self._weights[self._starts[at] : end][is_current].astype(np.float32)
        return rows[is_current], weights


def _pairs(
    words: array[int], ends: array[int], numbers: Sequence[tuple[int, ...]]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float32]]:
    """Return each word with its row, as one number, and the number of words of each row.

    Args:
        words: The words of all rows, by their places in *numbers*.
        ends: The ends of the rows in *words*.
        numbers: The numbers of each word.
    """
    import numpy as np  # noqa: PLC0415  - as above

    every = np.array([*chain.from_iterable(numbers)], dtype=np.uint64)
    sizes = np.array([*map(len, numbers)], dtype=np.int64)
    places = np.array(words, dtype=np.int64)
    word_sizes = sizes[places]
    # The numbers of a word are a slice of *every*: where it begins, less what comes before it here.
    shifts = (np.cumsum(sizes) - sizes)[places] - (np.cumsum(word_sizes) - word_sizes)
    pairs = every[np.repeat(shifts, word_sizes) + np.arange(word_sizes.sum())] << np.uint64(_SHIFT)
    totals = np.concatenate([[0], np.cumsum(word_sizes)])[np.array(ends, dtype=np.int64)]
    lengths = np.diff(totals, prepend=0)
    pairs |= np.repeat(np.arange(len(ends), dtype=np.uint64), lengths)
    return pairs, lengths.astype(np.float32)


def _first_of_equal(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return where each value of a sorted array begins."""
    import numpy as np  # noqa: PLC0415  - as above

    is_first = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)
