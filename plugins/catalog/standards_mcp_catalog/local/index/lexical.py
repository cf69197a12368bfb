"""The full-text half of the index: stemmed English words, scored by BM25 (tantivy).

A query's text goes through the same analyzer as the records, and becomes a plain disjunction of
terms: no character of it has a meaning of its own.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from math import log1p, sqrt
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import tantivy
from tantivy import Filter, Occur, Query, Tokenizer

from standards_mcp_catalog.records import StandardRecord, ancestors_text, without_surrogates

from .manifest import reading

# Words of grammar. The words of mathematics stay terms: between, more, same, than ...
FUNCTION_WORDS = """
a am an and any are as at be because been being both but by can could d did do does doing don for
from further had has have having he her here hers herself him himself his how i if in into is it
its itself just let ll m may me might must my myself no nor now of on once only or other our ours
ourselves own re s she should so some such t that the their theirs them themselves then there these
they this those through to too until up us ve very was we were what when where which while who whom
why will with would you your yours yourself yourselves
"""
PAIR_WEIGHT = 0.2  # see docs/benchmarks.md
_STEM_ANALYZER = "english"
_WORD_ANALYZER = "words"
_TEXT = "text"
_WORDS_OF_TEXT = "words"
_PAIRS = "pairs"
_TOKENS = "tokens"
_ROW = "row"
_ARENA_BYTES = 100_000_000  # memory of the one writing thread
_LONGEST_WORD = 40
MOST_WORDS = 10
"""Maximum number of words of `common_words`."""
_WRITTEN_WORD = re.compile(r"\w(?:\S*\w)?")
_LOCK_FILE = ".tantivy-meta.lock"


class Ranked(NamedTuple):
    """Rows of an index and their scores, best first."""

    rows: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]


class LexicalWriter:
    """Writes a full-text index into an empty folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        index = tantivy.Index(_schema(), str(folder), reuse=False)
        _register(index)
        self._writer = index.writer(_ARENA_BYTES, 1)

    def add(self, row: int, parts: Iterable[str], tokens: Iterable[str]) -> None:
        """Add one row: the texts that are searched, and its filter tokens."""
        document = tantivy.Document()
        document.add_unsigned(_ROW, row)
        texts = [with_words(without_surrogates(part)) for part in parts]
        # One field for ancestors and description is better than two (docs/benchmarks.md).
        document.add_text(_TEXT, "\n".join(texts))
        document.add_text(_WORDS_OF_TEXT, "\n".join(texts))
        for text in texts:
            for pair in _pairs(_terms(text)):
                document.add_text(_PAIRS, pair)
        for token in tokens:
            document.add_text(_TOKENS, token)
        self._writer.add_document(document)

    def finish(self) -> None:
        """Commit all rows, and wait for tantivy's threads."""
        self._writer.commit()
        self._writer.wait_merging_threads()


class LexicalIndex:
    """An open full-text index.

    Raises:
        CatalogUnavailableError: The folder does not hold a readable index.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with reading(folder):
            opened = folder
            if not _can_be_locked(folder):
                opened = _links_to(folder)
                weakref.finalize(self, shutil.rmtree, opened, ignore_errors=True)
            self._index = tantivy.Index.open(str(opened))
            _register(self._index)
            self._searcher = self._index.searcher()
        self._schema = self._index.schema

    def text_query(self, text: str) -> Query | None:
        """Return the disjunction of the terms of *text*, or None if no record has any of them.

        Words of grammar count only in a text without other words. A term that occurs n times in
        *text* weighs the square root of n, and its inverse document frequency counts with the
        exponent 1.5 instead of 1: descriptions of activities have many common words. Terms that are
        adjacent in the query and in the record count a second time, as a pair.
        """
        terms = _terms(with_words(without_surrogates(text)))
        clauses = self._clauses(_TEXT, terms, 1.0)
        if not clauses:
            return None
        return Query.boolean_query([*clauses, *self._clauses(_PAIRS, _pairs(terms), PAIR_WEIGHT)])

    def unknown_terms(self, text: str) -> frozenset[str]:
        """Return the terms of *text* that no record has."""
        terms = frozenset(_terms(with_words(without_surrogates(text))))
        with reading(self._folder):
            return frozenset(term for term in terms if not self._searcher.doc_freq(_TEXT, term))

    def words(self) -> list[tuple[str, int]]:
        """Return the unstemmed words of all records, each with its number of records."""
        with reading(self._folder):
            return self._searcher.terms_with_prefix(_WORDS_OF_TEXT, "")

    def tokens_query(self, tokens: Sequence[str]) -> Query:
        """Return the query for the rows that have any of these filter tokens."""
        if not tokens:
            return Query.empty_query()
        return Query.term_set_query(self._schema, _TOKENS, tokens)

    def rows_query(self, rows: npt.NDArray[np.int64]) -> Query:
        """Return the query for these rows."""
        return Query.term_set_query(self._schema, _ROW, rows.tolist())

    def search(self, query: Query, within: Query | None, limit: int) -> Ranked:
        """Return at most *limit* rows of *within* for *query*, best first.

        Rows of equal score keep the order of `LexicalWriter.add`.
        """
        if within is not None:
            # The filter only lets rows through. With a score of its own it would change the order.
            unscored = Query.const_score_query(within, 0.0)
            query = Query.boolean_query([(Occur.Must, query), (Occur.Must, unscored)])
        with reading(self._folder):
            hits = self._searcher.search(query, limit, count=False).hits
            rows = self._searcher.fast_field_values(_ROW, [address for _, address in hits])
            return Ranked(
                np.array(rows, dtype=np.int64),
                np.array([score for score, _ in hits], dtype=np.float32),
            )

    def scores(self, query: Query, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Return the exact score of each of *rows*, 0 where no term occurs."""
        if not rows.size:
            return np.zeros(0, dtype=np.float32)
        found = self.search(query, self.rows_query(rows), int(rows.size))
        known = dict(zip(found.rows.tolist(), found.scores.tolist(), strict=True))
        return np.array([known.get(row, 0.0) for row in rows.tolist()], dtype=np.float32)

    def _clauses(
        self, field: str, terms: Iterable[str], weight: float
    ) -> list[tuple[Occur, Query]]:
        counts = Counter(terms)
        with reading(self._folder):
            frequencies = {term: self._searcher.doc_freq(field, term) for term in counts}

        def rarity(records: int) -> float:  # BM25's, as tantivy computes it
            return log1p((self._searcher.num_docs - records + 0.5) / (records + 0.5))

        # The inverse document frequency is a factor of tantivy's scores already. A boost of its
        # square root makes the exponent 1.5.
        return [
            (
                Occur.Should,
                Query.boost_query(
                    Query.term_query(self._schema, field, term, index_option="freq"),
                    weight * sqrt(n * rarity(frequencies[term])),
                ),
            )
            for term, n in counts.items()
            if frequencies[term]
        ]


def _terms(text: str) -> list[str]:
    """Return the terms of *text* without words of grammar, or all terms if no others are left."""
    terms = stems(text)
    return [term for term in terms if term not in _grammar_stems()] or terms


@cache
def _grammar_stems() -> frozenset[str]:
    return frozenset(stems(FUNCTION_WORDS))


def _pairs(terms: Sequence[str]) -> list[str]:
    return [f"{one} {other}" for one, other in pairwise(terms)]


def _can_be_locked(folder: Path) -> bool:
    """Return True if tantivy can lock *folder*, as it does for reading, too."""
    try:
        with (folder / _LOCK_FILE).open("ab"):
            return True
    except OSError:
        return False


def _links_to(folder: Path) -> Path:
    """Return a temporary folder with links to all files of *folder* except locks, or copies."""
    links = Path(tempfile.mkdtemp(prefix="standards-mcp-"))
    for path in folder.iterdir():
        if path.suffix != ".lock":
            try:
                (links / path.name).symlink_to(path.absolute())
            except OSError:  # Windows lets few users make links
                shutil.copy(path, links)
    return links


def stems(text: str) -> list[str]:
    """Return the terms of *text*, including words of grammar."""
    return _shared_analyzer().analyze(text)


def common_words(query: str, records: Iterable[StandardRecord]) -> Iterator[list[str]]:
    """Yield, for each record, the words of *query*, as written, that it has in any form.

    Words of grammar are left out. Of more than ten words, the longest remain.
    """
    words = dict[tuple[str, ...], str]()
    for word in _WRITTEN_WORD.findall(without_surrogates(query)):
        words.setdefault(_terms_of_word(word), word)
    words.pop((), None)
    for record in records:
        texts = {"content": record.content, "description": record.description}
        present = set(stems(without_surrogates(f"{ancestors_text(texts)} {record.description}")))
        common = [word for terms, word in words.items() if present.issuperset(terms)]
        longest = sorted(common, key=len, reverse=True)[:MOST_WORDS]
        yield [word for word in common if word in longest]


@lru_cache(4096)  # an activity of 8,000 characters has a thousand words
def _terms_of_word(word: str) -> tuple[str, ...]:
    if len(word) > _LONGEST_WORD:
        return ()
    return tuple(term for term in stems(word) if term not in _grammar_stems())


def _register(index: tantivy.Index) -> None:
    index.register_tokenizer(_STEM_ANALYZER, _stem_analyzer())
    index.register_tokenizer(_WORD_ANALYZER, _word_analyzer().build())


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(_TEXT, tokenizer_name=_STEM_ANALYZER, index_option="freq")
    builder.add_text_field(_WORDS_OF_TEXT, tokenizer_name=_WORD_ANALYZER, index_option="basic")
    builder.add_text_field(_PAIRS, tokenizer_name="raw", index_option="freq")
    builder.add_text_field(_TOKENS, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field(_ROW, indexed=True, fast=True)
    return builder.build()


def _word_analyzer() -> tantivy.TextAnalyzerBuilder:
    return (
        tantivy.TextAnalyzerBuilder(Tokenizer.simple())
        .filter(Filter.remove_long(_LONGEST_WORD))
        .filter(Filter.lowercase())
        .filter(Filter.ascii_fold())
    )


def _stem_analyzer() -> tantivy.TextAnalyzer:
    return _word_analyzer().filter(Filter.stemmer("english")).build()


_shared_analyzer = cache(_stem_analyzer)


_SIGN: Final = re.compile(r"[\\$%^°√∛∠△∆π≤≥<>\u00d7÷²³½⅓⅔¼¾⅛]|\d[./]\d|\bf\(x\)")
_SIGN_WORDS: Final = tuple(
    (re.compile(pattern), f" {word} ")
    for pattern, word in (
        (r"\\[dt]?frac(?![a-z])|\\over(?![a-z])|[½⅓⅔¼¾⅛]", "fraction"),
        (r"(?<![\d/])(\d+/\d+)(?![\d/])", r"\1 fraction"),
        (r"\\?%", "percent"),
        (r"\\?\$(?=\s?\d)", "dollars"),
        (r"(?<![\d.])(\d*\.\d+)(?![\d.])", r"\1 decimal"),
        (r"\\sqrt\[3\]|∛", "cube root"),
        (r"\\sqrt(?![a-z])|√", "square root"),
        (r"\^\{?2\}?(?!\d)|²", "squared"),
        (r"\^\{?3\}?(?!\d)|³", "cubed"),
        (r"\^\{?\\circ\}?|\\(?:circ|degree)(?![a-z])|°", "degrees"),
        (r"\^", "exponent"),
        (r"\\(?:leq?|geq?|lt|gt)(?![a-z])|[≤≥]|(?<![-<=])[<>](?![-=>])", "inequality"),
        (r"\\times(?![a-z])|\u00d7", "times"),
        (r"\\div(?![a-z])|÷", "divided by"),
        (r"\\angle(?![a-z])|∠", "angle"),
        (r"\\(?:big)?triangle(?:up)?(?![a-z])|[△∆]", "triangle"),
        (r"\\overline(?![a-z])", "segment"),
        (r"\bf\(x\)", "function f(x)"),
        (r"\\(?:sin|cos|tan)(?![a-z])", "trigonometric"),
        (r"\\pi(?![a-z])|π", "pi"),
        (r"\\boxed(?![a-z])", "unknown"),
        (r"\\[A-Za-z]+", ""),
    )
)


def with_words(text: str) -> str:
    """Return *text* with words for signs: ``percent`` for ``%``, ``1/2 fraction`` for ``1/2``."""
    if _SIGN.search(text):
        for pattern, word in _SIGN_WORDS:
            text = pattern.sub(word, text)
    return text
