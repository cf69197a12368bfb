"""Words of texts in any script, for word matching.

Words become 32-bit numbers by a stable hash, because Qdrant's sparse vectors have numbers as keys.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
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
# BM25 with a fixed mean length: a server cannot weigh anew what is stored when the mean changes.
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


# A cache: it has the same entries whoever fills it.
_SEPARATORS: Final = _Separators()


class Vocabulary(dict[str, int]):
    """Map the words of many texts to counting numbers, each word of which is read once."""

    def __missing__(self, word: str) -> int:
        self[word] = len(self)
        return self[word]

    def places(self, text: str) -> Iterator[int]:
        """Return the words of a text by their places in `numbers`."""
        return map(self.__getitem__, _split(text))

    def numbers(self) -> list[tuple[int, ...]]:
        """Return the numbers of each word; the parts of an identifier have their own."""
        return [_numbers(word) for word in self]


def word_weight(count: Number, length: Number) -> Number:
    """Return the BM25 weight of a word, without its rarity.

    Args:
        count: The number of times that the text has it.
        length: The number of words of the text.
    """
    norm = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * length / _MEAN_LENGTH)
    return count * (_SATURATION + 1) / (count + norm)


def word_weights(text: str) -> dict[int, float]:
    """Return the words of a stored text with their weights."""
    found = Counter(chain.from_iterable(map(_numbers, _split(text))))
    length = float(found.total())
    return {number: word_weight(float(count), length) for number, count in found.items()}


def query_words(text: str) -> list[int]:
    """Return the words of a query, each once, in a stable order."""
    return sorted(word_weights(text))


def _split(text: str) -> list[str]:
    """Return the words of a text without accents, so that `naïve` and `naive` are one word."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))
    return text.translate(_SEPARATORS).split()


def _numbers(word: str) -> tuple[int, ...]:
    return tuple(_number(each) for each in _forms(word))


def _forms(word: str) -> list[str]:
    """Return a word, the parts of an identifier, and pairs of characters in unspaced scripts."""
    forms: list[str] = []
    for run in _UNSPACED.findall(word):
        forms += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
    for spaced in _UNSPACED.sub(" ", word).split():
        # "#retry" is a tag, "C#" is a name.
        whole = spaced.lstrip(_IDENTIFIER_CHARACTERS).rstrip("_")
        parts = [each for each in _PARTS.split(whole) if each]
        names = [whole, *parts] if len(parts) > 1 or parts != [whole] else [whole]
        forms += [each.casefold() for each in dict.fromkeys(names) if each]
    return forms


def _number(form: str) -> int:
    return int.from_bytes(blake2b(form.encode("utf-8", "surrogatepass"), digest_size=4).digest())
