"""Translate texts into English by a table of words and phrases, for search.

Each line of a table has a word or a phrase, and up to three English words for it; without any it
adds nothing to a search. A word without a line of its own is found by its stem, so that one line
serves all its forms. ``#`` in a phrase is a number, which its English has in the same place:
``#º grado`` is ``grade #``. The longest phrase counts. Other words, such as names, stay.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from os.path import commonprefix
from typing import Final, NamedTuple

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

TABLES: Final = ("Spanish",)
"""The languages that have a folder here; tantivy has a stemmer of the same name."""
_PIECE: Final = re.compile(r"[\w°]+(?:[.'’/-]+[\w°]+)*|[^\w\s]")
_KEPT_MARKS: Final = ",;:.?!()%+=<>$"
_BEFORE_MARK: Final = re.compile(r"\s+(?=[,;:.?!)%])|(?<=[($])\s+")
_SHORTEST_STEMMED: Final = 4
_LINE: Final = " 0 "  # between the lines of a table that are stemmed together


class _Entry(NamedTuple):
    phrase: str
    english: str


class Table:
    """The words of one language with their English, and the forms that they may have."""

    def __init__(self, language: str) -> None:
        self._stemmer = _stemmer(language.casefold())
        folder = files(__package__ or __name__) / language.casefold()
        with (folder / "words.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
        entries = [_Entry(_folded(phrase), english) for phrase, english in rows]
        self._exact = {entry.phrase: entry for entry in entries}
        stems = self._stemmer.analyze(_LINE.join(entry.phrase for entry in entries))
        lines = " ".join(stems).split(_LINE)
        self._by_stem = defaultdict[str, list[_Entry]](list)
        for stem, entry in zip(lines, entries, strict=True):
            self._by_stem[stem].append(entry)
        self._longest = max(entry.phrase.count(" ") for entry in entries) + 1
        self._of_both = frozenset((folder / "english.txt").read_text("utf-8").split())
        self._english = {word for entry in entries for word in entry.english.split()}
        self._english_stems = frozenset(_stemmer("english").analyze(" ".join(self._english)))

    def translate(self, text: str) -> str:
        """Return *text* word by word in English."""
        parts = (english for _, english in self._read(text))
        return _BEFORE_MARK.sub("", " ".join(filter(None, parts))).strip(" ,;:")

    def has_most_words(self, text: str) -> bool:
        """Return True if most words of *text* are of this language, and not English as well.

        Words of both languages count for neither, and names, with capitals inside a text, against
        it. A single word counts only if there is no other.
        """
        words = [piece for pieces, _ in self._read(text) for piece in pieces if piece.isalpha()]
        telling = [
            (word.islower() or word is words[0]) and self._is_own(word)
            for word in words
            if _folded(word) not in self._of_both
        ]
        own = sum(telling)
        return own == len(telling) > 0 or 1 < own >= len(telling) / 2

    def _is_own(self, word: str) -> bool:
        plain = _folded(word)
        if plain in self._english or self._entry([plain]) is None:
            return False
        return plain in self._exact or self._stem_of_english(plain) not in self._english_stems

    @staticmethod
    def _stem_of_english(word: str) -> str:
        return "".join(_stemmer("english").analyze(word))

    def _read(self, text: str) -> Iterator[tuple[Sequence[str], str]]:
        """Yield the parts of *text*, each with its English."""
        pieces = _PIECE.findall(unicodedata.normalize("NFC", text))
        start = 0
        while start < len(pieces):
            for end in range(min(start + self._longest, len(pieces)), start, -1):
                part = pieces[start:end]
                if entry := self._entry([_folded(piece) for piece in part]):
                    yield part, _with_numbers(entry.english, part)
                    break
            else:
                end, part = start + 1, pieces[start : start + 1]
                is_mark = not part[0][0].isalnum()
                yield part, "" if is_mark and part[0] not in _KEPT_MARKS else part[0]
            start = end

    def _entry(self, words: Sequence[str]) -> _Entry | None:
        """Return the entry of a word or a phrase, or of the most similar one of the same stem."""
        phrase = " ".join(re.sub(r"\d+", "#", word) for word in words)
        if phrase in self._exact or len(words[0]) < _SHORTEST_STEMMED:
            return self._exact.get(phrase)
        similar = self._by_stem.get(" ".join(self._stemmer.analyze(phrase)), ())
        # "cuentos" is of "cuento", a story, and not of "cuenta", an account.
        return max(similar, key=lambda entry: _likeness(entry.phrase, phrase), default=None)


@cache
def table_of(language: str) -> Table:
    """Return the table of one of `TABLES`, read once."""
    return Table(language)


def _likeness(one: str, other: str) -> tuple[int, int]:
    return len(commonprefix((one, other))), -abs(len(one) - len(other))


def _with_numbers(english: str, part: Sequence[str]) -> str:
    numbers = iter(re.findall(r"\d+", " ".join(part)))
    return re.sub("#", lambda _: next(numbers, ""), english)


def _folded(word: str) -> str:
    """Return a word in small letters without accents; ``º`` of ordinals stays."""
    letters = unicodedata.normalize("NFD", word.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


@cache
def _stemmer(language: str) -> TextAnalyzer:
    builder = TextAnalyzerBuilder(Tokenizer.whitespace())
    return builder.filter(Filter.ascii_fold()).filter(Filter.stemmer(language)).build()
