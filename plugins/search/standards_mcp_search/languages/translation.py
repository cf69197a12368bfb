"""Translate texts into English by a table of words and phrases, for search.

Each line of a table has a word or a phrase, and up to three English words for it; a phrase without
English words is dropped. A word without a line of its own is found by its stem, so that one line
covers all forms of a word. ``#`` is a number in a phrase and in its English: ``#º grado``
is ``grade #``. The longest matching phrase counts. Other words, such as names, stay unchanged.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import Final, NamedTuple

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

TABLES: Final = ("Spanish",)
"""The languages with a folder here; each name is also the name of a stemmer in tantivy."""
_PIECE: Final = re.compile(r"[\w°]+(?:[.'\u2019/-]+[\w°]+)*|[^\w\s]")
_KEPT_MARKS: Final = ",;:.?!()%+=<>$"
_SPACE_AT_MARK: Final = re.compile(r"\s+(?=[,;:.?!)%])|(?<=[($])\s+")
_ACCENTS: Final = re.compile(r"[\u0300-\u036f]+")
_SHORTEST_STEMMED: Final = 4
_SEPARATOR: Final = " 0 "  # between phrases, to stem all of them in one call


class _Entry(NamedTuple):
    phrase: str
    english: str


class Table:
    """The words and phrases of one language, with their stems and their English."""

    def __init__(self, language: str) -> None:
        self._stemmer = _stemmer(language.casefold())
        folder = files(__package__ or __name__) / language.casefold()
        lines = _folded((folder / "words.csv").read_text("utf-8")).splitlines()
        entries = [_Entry(*row) for row in csv.reader(lines[1:])]
        self._exact = {entry.phrase: entry for entry in entries}
        stems = self._stemmer.analyze(_SEPARATOR.join(entry.phrase for entry in entries))
        self._by_stem = defaultdict[str, list[_Entry]](list)
        for stem, entry in zip(" ".join(stems).split(_SEPARATOR), entries, strict=True):
            self._by_stem[stem].append(entry)
        self._longest = max(entry.phrase.count(" ") for entry in entries) + 1
        self._shared_words = frozenset((folder / "english.txt").read_text("utf-8").split())
        self._english = {word for entry in entries for word in entry.english.split()}
        self._english_stems = frozenset(_stemmer("english").analyze(" ".join(self._english)))

    def translate(self, text: str) -> str:
        """Return *text* word by word in English."""
        parts = (english for _, english in self._read(text))
        return _SPACE_AT_MARK.sub("", " ".join(filter(None, parts))).strip(" ,;:")

    def has_most_words(self, text: str) -> bool:
        """Return True if at least half of the words of *text* are of this language only.

        Words of both languages and abbreviations do not count. A capitalised word after the first
        one is taken for a name, so it counts against the language. A single word of the language
        is enough only if no other word counts, and if the table has it or its singular.
        """
        words = [piece for pieces, _ in self._read(text) for piece in pieces if piece.isalpha()]
        counted = [
            word for word in words if not (word.isupper() or _folded(word) in self._shared_words)
        ]
        known = [
            word
            for word in (_folded(word) for word in counted if word is words[0] or word.islower())
            if self._entry([word]) is not None and not self._is_english(word)
        ]
        if len(known) == 1:
            return len(counted) == 1 and self._entry_of_singular(known[0]) is not None
        return 2 * len(known) >= len(counted) > 0

    def _is_english(self, word: str) -> bool:
        if word in self._english:
            return True
        stem = "".join(_stemmer("english").analyze(word))
        return word not in self._exact and stem in self._english_stems

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

    def _entry_of_singular(self, word: str) -> _Entry | None:
        """Return the entry of a word or of its singular."""
        forms = (word, word.removesuffix("s"), word.removesuffix("es"))
        return next((self._exact[form] for form in forms if form in self._exact), None)

    def _entry(self, words: Sequence[str]) -> _Entry | None:
        """Return the entry of a word or a phrase, or the most similar entry with the same stem."""
        phrase = " ".join(re.sub(r"\d+", "#", word) for word in words)
        if phrase in self._exact or len(words[0]) < _SHORTEST_STEMMED:
            return self._exact.get(phrase)
        similar = self._by_stem.get(" ".join(self._stemmer.analyze(phrase)), ())
        if not similar:  # the stemmer leaves short words as they are
            return self._entry_of_singular(phrase)
        # "cuentos" is of "cuento", a story, and not of "cuenta", an account.
        return max(similar, key=lambda entry: _likeness(entry.phrase, phrase), default=None)


@cache
def table_of(language: str) -> Table:
    """Return the table of one of `TABLES`, read once."""
    return Table(language)


def _likeness(one: str, other: str) -> tuple[int, int]:
    same = takewhile(lambda letters: letters[0] == letters[1], zip(one, other, strict=False))
    return len(list(same)), -abs(len(one) - len(other))


def _with_numbers(english: str, part: Sequence[str]) -> str:
    numbers = iter(re.findall(r"\d+", " ".join(part)))
    return re.sub("#", lambda _: next(numbers, ""), english)


def _folded(text: str) -> str:
    """Return a text in small letters without accents; ``º`` of ordinals stays."""
    return _ACCENTS.sub("", unicodedata.normalize("NFD", text.casefold()))


@cache
def _stemmer(language: str) -> TextAnalyzer:
    builder = TextAnalyzerBuilder(Tokenizer.whitespace())
    return builder.filter(Filter.ascii_fold()).filter(Filter.stemmer(language)).build()
