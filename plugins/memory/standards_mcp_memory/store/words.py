"""Word matching: split texts of any script into words, rank memories by them, fuse the scores.

Words become 32-bit numbers by a stable hash, because Qdrant's sparse vectors have numbers as keys.
"""

from __future__ import annotations

import math
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from standards_mcp_memory.records import Document

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Number = TypeVar("Number", float, "npt.NDArray[Any]")

_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_IDENTIFIER_CHARACTERS: Final = "_+#"
_PARTS: Final = re.compile(
    r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
    r"|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])|_+|[+#]+(?=[A-Za-z0-9])"
)
_UNSPACED: Final = re.compile(  # Thai to Khmer, kana, Han, Hangul
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)
# BM25 with a fixed mean length, because a server cannot update stored weights when it changes.
_SATURATION: Final = 1.2
_LENGTH_WEIGHT: Final = 0.75
_MEAN_LENGTH: Final = 100


class _Separators(dict[int, int]):
    """Map characters between words to spaces, for `str.translate`."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        # Marks belong to words: vowels in the scripts of India are marks.
        is_separator = unicodedata.category(character)[0] in "ZPSC"
        keeps = not is_separator or character in _IDENTIFIER_CHARACTERS
        self[code] = code if keeps else ord(" ")
        return self[code]


# A cache of pure results, so it can be shared.
_SEPARATORS: Final = _Separators()


class Vocabulary(dict[str, int]):
    """Number the words of many texts, so that each word is hashed once."""

    def __missing__(self, word: str) -> int:
        self[word] = len(self)
        return self[word]

    def places(self, text: str) -> Iterator[int]:
        """Return the indexes in `numbers` of the words of a text."""
        return map(self.__getitem__, _split(text))

    def numbers(self) -> list[tuple[int, ...]]:
        """Return the numbers of each word; parts of identifiers have numbers, too."""
        return [_numbers(word) for word in self]


def word_weight(count: Number, length: Number) -> Number:
    """Return the BM25 weight of a word, without its rarity.

    Args:
        count: Its number of occurrences in the text.
        length: The number of words in the text.
    """
    norm = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length / _MEAN_LENGTH)
    return count * (_SATURATION + 1) / (count + norm)


def word_weights(text: str) -> dict[int, float]:
    """Return the words of a stored text with their weights."""
    counts = Counter(chain.from_iterable(map(_numbers, _split(text))))
    length = float(counts.total())
    return {number: word_weight(float(count), length) for number, count in counts.items()}


def query_words(text: str) -> list[int]:
    """Return the words of a query, each once, in a stable order."""
    return sorted(word_weights(text))


def _split(text: str) -> list[str]:
    """Return the words of a text without accents, so that `naïve` and `naive` are one word."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    return text.translate(_SEPARATORS).split()


def _numbers(word: str) -> tuple[int, ...]:
    return tuple(_number(form) for form in _forms(word))


def _forms(word: str) -> list[str]:
    """Return a word, the parts of an identifier, and pairs of characters in unspaced scripts."""
    forms: list[str] = []
    for run in _UNSPACED.findall(word):
        forms += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
    for spaced in _UNSPACED.sub(" ", word).split():
        # "#retry" is a tag, "C#" is a name.
        whole = spaced.lstrip(_IDENTIFIER_CHARACTERS).rstrip("_")
        parts = [part for part in _PARTS.split(whole) if part]
        forms += [name.casefold() for name in dict.fromkeys([whole, *parts]) if name]
    return forms


def _number(form: str) -> int:
    # Servers store these numbers, so the hash must be the same in all versions.
    return int.from_bytes(blake2b(form.encode("utf-8", "surrogatepass"), digest_size=4).digest())


_SHIFT: Final = 32


class WordIndex:
    """BM25 over the memories of one collection of an embedded store.

    Sparse vectors in qdrant-client's local mode take 260 ms for 4,000 memories, vectors 12 ms
    (docs/benchmarks.md). So the first search after the store was opened makes this index from the
    payloads, in memory.

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
        # Sorted by word, then by row, so that the rows of a word are one slice.
        pairs.sort()
        first = _first_of_equal(pairs)
        counts = np.diff(first, append=len(pairs)).astype(np.float32)
        pairs = pairs[first]
        row_type = np.min_scalar_type(len(ids))  # two bytes if possible: there are millions
        self._rows = (pairs & np.uint64(2**_SHIFT - 1)).astype(row_type)
        self._weights = word_weight(counts, lengths[self._rows]).astype(np.float16)
        pairs >>= np.uint64(_SHIFT)
        self._starts = _first_of_equal(pairs)
        self._words = pairs[self._starts]
        self._is_current = np.ones(len(ids), dtype=bool)
        # Few memories change while a store is open, so a search reads them one by one.
        self._changed: dict[int, dict[int, float]] = {}

    def put(self, document: Document) -> None:
        """Add a memory, or replace the one with its id."""
        self.remove(document.id)
        self._changed[document.id] = word_weights(document.text)

    def remove(self, identifier: int) -> None:
        """Remove a memory, if it exists."""
        self._changed.pop(identifier, None)
        rows = self._rows_of([identifier])
        self._is_current[rows[rows < len(self._ids)]] = False

    def scores(
        self, words: Sequence[int], limit: int, extra_ids: Sequence[int]
    ) -> dict[int, float]:
        """Return the scores of the best *limit* memories and of *extra_ids*; 0 without a match."""
        import numpy as np  # noqa: PLC0415  - as above

        total = np.zeros(len(self._ids) + 1, dtype=np.float32)  # the last row is for unknown ids
        changed = dict.fromkeys(self._changed, 0.0)
        count = int(self._is_current.sum()) + len(changed)
        for word in words:
            rows, weights = self._postings(word)
            holders = {
                doc_id: weights_by_word[word]
                for doc_id, weights_by_word in self._changed.items()
                if word in weights_by_word
            }
            frequency = len(rows) + len(holders)
            rarity = math.log1p((count - frequency + 0.5) / (frequency + 0.5))
            total[rows] += rarity * weights
            for doc_id, weight in holders.items():
                changed[doc_id] += rarity * weight
        top = np.argpartition(-total, min(limit, len(self._ids)))[:limit]
        top = top[total[top] > 0]
        positive: dict[int, float] = dict(
            zip(self._ids[top].tolist(), total[top].tolist(), strict=True)
        )
        positive |= {doc_id: score for doc_id, score in changed.items() if score > 0}
        best = sorted(positive, key=lambda doc_id: (-positive[doc_id], doc_id))[:limit]
        stored: dict[int, float] = dict(
            zip(extra_ids, total[self._rows_of(extra_ids)].tolist(), strict=True)
        )
        return {doc_id: positive[doc_id] for doc_id in best} | {
            doc_id: changed.get(doc_id, score) for doc_id, score in stored.items()
        }

    def _rows_of(self, ids: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the rows of memories; for unknown ids, the number of rows."""
        import numpy as np  # noqa: PLC0415  - as above

        id_array = np.array(ids, dtype=np.int64)
        rows = np.searchsorted(self._ids, id_array)
        is_stored = (
            self._ids[np.minimum(rows, len(self._ids) - 1)] == id_array if len(self._ids) else False
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
    """Return pairs of word and row, each as one number, and the number of words in each row.

    Args:
        words: The words of all rows, as indexes in *numbers*.
        ends: The ends of the rows in *words*.
        numbers: The numbers of each word.
    """
    import numpy as np  # noqa: PLC0415  - as above

    every = np.array([*chain.from_iterable(numbers)], dtype=np.uint64)
    sizes = np.array([*map(len, numbers)], dtype=np.int64)
    places = np.array(words, dtype=np.int64)
    word_sizes = sizes[places]
    # The numbers of a word are a slice of *every*. A shift is the difference between the start of
    # this slice and the position of the word in the result.
    shifts = (np.cumsum(sizes) - sizes)[places] - (np.cumsum(word_sizes) - word_sizes)
    pairs = every[np.repeat(shifts, word_sizes) + np.arange(word_sizes.sum())] << np.uint64(_SHIFT)
    totals = np.concatenate([[0], np.cumsum(word_sizes)])[np.array(ends, dtype=np.int64)]
    lengths = np.diff(totals, prepend=0)
    pairs |= np.repeat(np.arange(len(ends), dtype=np.uint64), lengths)
    return pairs, lengths.astype(np.float32)


def _first_of_equal(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return the first index of each value of a sorted array."""
    import numpy as np  # noqa: PLC0415  - as above

    is_first = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


# Measured with benchmarks/memory_search.py: 0.45, the weight of the catalog, has the same recall,
# but puts fewer hits first.
WORD_WEIGHT: Final = 0.3


def fused(cosines: Mapping[int, float], words: Mapping[int, float]) -> dict[int, float]:
    """Fuse both scores of each memory into one between 0 and 1.

    Both are divided by their best and added with weights. The cosine of the nearest vector bounds
    the result, so a query that fits no memory has low scores.

    Args:
        words: Scores by words of the memories of *cosines*.
    """
    nearest = max(0.0, min(1.0, max(cosines.values(), default=0.0)))
    best = max(words.values(), default=0.0)
    if nearest <= 0 or best <= 0:
        return dict(cosines)
    return {
        doc_id: WORD_WEIGHT * nearest * words.get(doc_id, 0.0) / best
        + (1 - WORD_WEIGHT) * max(0.0, cosine)
        for doc_id, cosine in cosines.items()
    }
