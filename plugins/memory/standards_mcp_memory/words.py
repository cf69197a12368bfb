"""Word matching: split texts of any script into words, rank memories by them, fuse the scores.

Words become 32-bit numbers by a stable hash, because Qdrant's sparse vectors have numbers as keys.
"""

from __future__ import annotations

import math
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from .records import Document

Number = TypeVar("Number", float, npt.NDArray[Any])

_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_IDENTIFIER_CHARACTERS: Final = "_+#"
_PART_BOUNDARIES: Final = re.compile(
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
# Measured with benchmarks/memory_search.py: 0.45, the weight of the catalog, has the same recall,
# but puts fewer hits first.
_WORD_WEIGHT: Final = 0.3


class _Separators(dict[int, int]):
    """Maps characters between words to spaces, for `str.translate`."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        # Marks belong to words: vowels in the scripts of India are marks.
        is_separator = unicodedata.category(character)[0] in "ZPSC"
        keeps = not is_separator or character in _IDENTIFIER_CHARACTERS
        self[code] = code if keeps else ord(" ")
        return self[code]


# A cache of pure results, so it can be shared.
_SEPARATORS: Final = _Separators()


def word_weight(count: Number, length: Number) -> Number:
    """Return the BM25 weight of a word in a text, without the factor for its rarity.

    Args:
        count: The number of occurrences of the word in the text.
        length: The number of words in the text.
    """
    norm = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length / _MEAN_LENGTH)
    return count * (_SATURATION + 1) / (count + norm)


def word_counts(text: str) -> Counter[int]:
    """Count the words of a text and the parts of identifiers, by the hash of the word.

    Accents do not count, so `naïve` and `naive` are one word.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    words = text.translate(_SEPARATORS).split()
    return Counter([word_hash for word in words for word_hash in _word_hashes(word)])


def word_weights(text: str) -> dict[int, float]:
    """Return the BM25 weights of the words of a stored text, by the hash of the word."""
    counts = word_counts(text)
    length = float(counts.total())
    return {word_hash: word_weight(float(count), length) for word_hash, count in counts.items()}


def query_words(text: str) -> list[int]:
    """Return the hashes of the words of a query, each once, in a stable order."""
    return sorted(word_counts(text))


# The words of a language repeat: a store of 20,000 memories has some thousands.
@lru_cache(100_000)
def _word_hashes(word: str) -> tuple[int, ...]:
    # Servers store these hashes, so they must be the same in all versions.
    encoded = [form.encode("utf-8", "surrogatepass") for form in _forms(word)]
    return tuple(int.from_bytes(blake2b(form, digest_size=4).digest()) for form in encoded)


def _forms(word: str) -> list[str]:
    """Return a word, the parts of an identifier, and pairs of characters in unspaced scripts."""
    forms: list[str] = []
    for run in _UNSPACED.findall(word):
        forms += [run[position : position + 2] for position in range(max(1, len(run) - 1))]
    for spaced in _UNSPACED.sub(" ", word).split():
        # "#retry" is a tag, "C#" is a name.
        whole = spaced.lstrip(_IDENTIFIER_CHARACTERS).rstrip("_")
        parts = [part for part in _PART_BOUNDARIES.split(whole) if part]
        forms += [name.casefold() for name in dict.fromkeys([whole, *parts]) if name]
    return forms


class WordIndex:
    """BM25 over the memories of one collection of an embedded store.

    Sparse vectors in qdrant-client's local mode take 260 ms for 4,000 memories, vectors 12 ms
    (docs/benchmarks.md). So the first search after the store was opened makes this index from the
    payloads, in memory.

    Args:
        documents: The memories, by rising id.
    """

    def __init__(self, documents: Iterable[Document]) -> None:
        ids, words, counts, sizes = array("q"), array("I"), array("I"), array("q")
        for document in documents:
            counted = word_counts(document.text)
            ids.append(document.id)
            words.extend(counted)
            counts.extend(counted.values())
            sizes.append(len(counted))
        # The last row belongs to no memory, so that an empty index needs no branches.
        self._ids = np.array([*ids, 0], dtype=np.int64)
        self._is_current = self._ids > 0
        row_type = np.min_scalar_type(len(ids))  # two bytes if possible: there are millions
        rows = np.repeat(np.arange(len(ids), dtype=row_type), np.array(sizes, dtype=np.int64))
        count_array = np.array(counts, dtype=np.float32)
        lengths = np.bincount(rows, count_array, len(ids)).astype(np.float32)
        weights = word_weight(count_array, lengths[rows])
        # Sorted by word, so that the rows of a word are one slice.
        word_array = np.array(words, dtype=np.uint32)
        order = np.argsort(word_array, kind="stable")
        self._rows, self._weights = rows[order], weights[order].astype(np.float16)
        self._words, starts = np.unique(word_array[order], return_index=True)
        self._bounds = np.append(starts, len(order))
        # Few memories change while a store is open, so a search reads them one by one.
        self._changed: dict[int, dict[int, float]] = {}

    def change(self, changes: Mapping[int, Document | None]) -> None:
        """Add, replace and remove memories by their ids; None removes one."""
        for doc_id, document in changes.items():
            self._changed.pop(doc_id, None)
            self._is_current[self._ids == doc_id] = False
            if document is not None:
                self._changed[doc_id] = word_weights(document.text)

    def scores(
        self, words: Sequence[int], limit: int, extra_ids: Sequence[int]
    ) -> dict[int, float]:
        """Return the scores of memories that have one of the words, by id.

        The best *limit* memories are included, *extra_ids* and all changed memories, if they have
        one of the words.
        """
        total = np.zeros(len(self._ids), dtype=np.float32)
        changed = dict.fromkeys(self._changed, 0.0)
        count = int(self._is_current.sum()) + len(changed)
        for word in words:
            position = int(np.searchsorted(self._words, np.uint32(word)))
            is_indexed = position < len(self._words) and self._words[position] == word
            start, end = self._bounds[position : position + 2] if is_indexed else (0, 0)
            rows = self._rows[start:end]
            is_current = self._is_current[rows]
            rows = rows[is_current]
            weights = self._weights[start:end][is_current].astype(np.float32)
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
        extra_rows = np.flatnonzero(np.isin(self._ids, np.array(extra_ids, dtype=np.int64)))
        best = np.argpartition(-total, min(limit, len(total) - 1))[:limit]
        rows = np.union1d(best, extra_rows)
        stored: dict[int, float] = dict(
            zip(self._ids[rows].tolist(), total[rows].tolist(), strict=True)
        )
        return {doc_id: score for doc_id, score in (stored | changed).items() if score > 0}


def fuse_scores(cosines: Mapping[int, float], words: Mapping[int, float]) -> dict[int, float]:
    """Fuse both scores of each memory into one.

    The scores by words are scaled so that the best equals the highest cosine, then both are added
    with weights. So a query that fits no memory has low scores. If cosines or words have no
    positive score, return the cosines.

    Args:
        words: Scores by words; memories that are not in *cosines* are ignored.
    """
    nearest = max(0.0, min(1.0, max(cosines.values(), default=0.0)))
    best = max(words.values(), default=0.0)
    if nearest <= 0 or best <= 0:
        return dict(cosines)
    return {
        doc_id: _WORD_WEIGHT * nearest * words.get(doc_id, 0.0) / best
        + (1 - _WORD_WEIGHT) * max(0.0, cosine)
        for doc_id, cosine in cosines.items()
    }
