"""What would make retrieval better: each idea on one half of the sources, judged on the other.

    python benchmarks/tuning.py --queries Q.jsonl.gz --index DIR

DIR is the folder that ``retrieval.py --index DIR`` filled. The sources of the queries are dealt
into two halves: an idea is chosen by what it does to the first and reported by what it does to the
second. Every row of a query's framework is scored, so that ideas differ in nothing but the idea.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from retrieval import lines, measures, split_by_source

from standards_mcp_catalog.local.index.columns import select
from standards_mcp_catalog.local.index.generation import Generation
from standards_mcp_catalog.local.index.manifest import current_folder
from standards_mcp_catalog.local.index.ranking import HEADING_PENALTY, LEXICAL_WEIGHT, scaled
from standards_mcp_catalog.local.index.vectors import Nearness, towards_standards
from standards_mcp_catalog.records import passages
from standards_mcp_encoders.minilm import MiniLmEncoder

Scores: TypeAlias = npt.NDArray[np.float32]
Query: TypeAlias = Mapping[str, Any]
_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"]
_GRADE = re.compile(
    r"\bgrade (\d{1,2})\b|\b(\d{1,2})(?:st|nd|rd|th)[ -]grade"
    rf"|\b({'|'.join(_ORDINALS)})[ -]grade|\b(kindergarten)",
    re.IGNORECASE,
)
_BOILERPLATE = re.compile(
    r"\b(?:in this (?:lesson|activity|unit|task)|students? (?:will|can|are able to)|learn(?:ers)? "
    r"(?:to|how to|about)|the (?:purpose|goal) of this (?:lesson|activity|task) is(?: to)?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Framework:
    """The rows of one framework; arrays in the order of the rows."""

    rows: npt.NDArray[np.int64]
    vectors: Scores
    groups: npt.NDArray[np.int32]
    heights: npt.NDArray[np.int32]
    parents: npt.NDArray[np.int64]
    grades: list[frozenset[str]]


@dataclass(frozen=True)
class Scored:
    """One query with the scores of every row of its framework, and what is gold."""

    query: Query
    framework: Framework
    words: Scores
    meaning: Scores
    gold: frozenset[int]


Idea: TypeAlias = Callable[[Scored], Scores]


def main() -> None:
    parser = argparse.ArgumentParser(description="Ideas for retrieval, judged on held-out sources.")
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--tier", choices=["A", "B"], help="only queries of this tier")
    arguments = parser.parse_args()
    bench = Bench(Generation(current_folder(arguments.index / "index")))
    queries = [each for each in lines(arguments.queries) if arguments.tier in {None, each["tier"]}]
    halves = split_by_source(queries)
    for number, half in enumerate(halves, 1):
        sources = ", ".join(sorted({query["source"] for query in half}))
        print(f"half {number}: {len(half)} queries of {sources}")
    print(f"{'nDCG@10':36}{'half 1':>10}{'half 2':>10}{'math':>10}{'ELA':>10}{'other':>10}")
    scored = [[bench.score(query, query["text"]) for query in half] for half in halves]
    for name, idea in ideas(bench):
        first, second = (
            [(each.query, ranked(each, idea(each))) for each in half] for half in scored
        )
        print(f"{name:36}{mean(first):10.4f}{mean(second):10.4f}", end="")
        for subject in ("math", "ELA", "other"):
            part = [pair for pair in second if subject_of(pair[0]) == subject]
            print(f"{mean(part):10.4f}" if part else f"{'-':>10}", end="")
        print(flush=True)


def subject_of(query: Query) -> str:
    if "math" in query["framework"].lower():
        return "math"
    return "ELA" if query["framework"] in {"CCSS-ELA", "OH-ela-app"} else "other"


def mean(ranks: Iterable[tuple[Query, Counter[str]]]) -> float:
    found = [measured["nDCG@10"] for _, measured in ranks]
    return sum(found) / len(found)


def ranked(scored: Scored, scores: Scores) -> Counter[str]:
    """Return the measures of the ranking by *scores*; equal texts are one result."""
    framework = scored.framework
    order = np.lexsort((framework.rows, -scores))
    groups = list(dict.fromkeys(framework.groups[order].tolist()))[:100]
    return measures([str(group) for group in groups], {str(group) for group in scored.gold})


class Bench:
    """Scores queries on one index, and remembers what it encoded."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self._encoder = MiniLmEncoder()
        self._vectors: dict[str, Scores] = {}
        self._frameworks: dict[str, Framework] = {}
        self._numbers = {id_: row for row, id_ in enumerate(generation.ids())}

    def score(self, query: Query, text: str) -> Scored:
        framework, index = self._framework(query["framework"]), self.generation.lexical
        words = np.zeros(len(framework.rows), dtype=np.float32)
        if (terms := index.text_query(query["text"])) is not None:
            words = index.scores(terms, framework.rows)
        gold = (self._numbers[id_] for id_ in query["gold_ids"] if id_ in self._numbers)
        return Scored(
            query, framework, words, self.meaning(framework, passages(text)),
            frozenset(int(self.generation.groups[row]) for row in gold),
        )  # fmt: skip

    def meaning(self, framework: Framework, texts: list[str]) -> Scores:
        for text in texts:
            if text not in self._vectors:
                self._vectors[text] = self._encoder.encode([text])[0]
        vectors = towards_standards(np.array([self._vectors[text] for text in texts]))
        assert self.generation.vectors is not None
        return Nearness(self.generation.vectors, vectors, None).exact(framework.rows)

    def _framework(self, name: str) -> Framework:
        if name not in self._frameworks:
            generation = self.generation
            selected = select(
                {"standard_set_id": name}, generation.columns, generation.lexical,
                generation.manifest.records,
            )  # fmt: skip
            assert selected.mask is not None
            assert generation.vectors is not None
            rows = np.flatnonzero(selected.mask)
            grades, parents = self._values("education_levels"), self._values("parent_id")
            above = [self._numbers.get(next(iter(parents[row]), ""), row) for row in rows.tolist()]
            self._frameworks[name] = Framework(
                rows, generation.vectors.exact[rows], np.array(generation.groups[rows]),
                np.array(generation.heights[rows]), np.searchsorted(rows, above),
                [grades[row] for row in rows.tolist()],
            )  # fmt: skip
        return self._frameworks[name]

    def _values(self, field: str) -> Mapping[int, frozenset[str]]:
        """Return the values of *field* of each row."""
        column, found = self.generation.columns.get(field), defaultdict[int, set[str]](set)
        if column is not None:
            codes = np.repeat(np.arange(len(column.values)), np.diff(column.starts))
            for row, code in zip(column.rows.tolist(), codes.tolist(), strict=True):
                found[row].add(str(column.values[code]))
        return defaultdict(frozenset, {row: frozenset(values) for row, values in found.items()})


def ideas(bench: Bench) -> Iterator[tuple[str, Idea]]:
    yield "as it is", fused
    for weight in (0.3, 0.4, 0.5, 0.6):
        yield f"weight of the words {weight}", lambda s, w=weight: fused(s, w)
    yield "reciprocal ranks", reciprocal
    for bonus in (0.03, 0.06, 0.12):
        yield (
            f"grade named in the query + {bonus}",
            lambda s, b=bonus: fused(s) + b * named_grade(s),
        )
    for share in (0.1, 0.2):
        yield f"{share} of the parent's likeness", lambda s, p=share: fused(with_parent(s, p))
    yield "a tenth of parent, children, siblings and five nearest each", with_neighbours
    for share in (0.2, 0.4):
        yield f"feedback of the best three x {share}", lambda s, f=share: fused(with_feedback(s, f))
    yield (
        "stock phrases dropped",
        lambda s: fused(other_text(bench, s, _BOILERPLATE.sub(" ", text(s)))),
    )
    yield (
        "numbers and signs dropped",
        lambda s: fused(other_text(bench, s, re.sub(r"[^A-Za-z.,;:'\s-]+", " ", text(s)))),
    )
    yield (
        "the first 256 tokens only",
        lambda s: fused(replace(s, meaning=bench.meaning(s.framework, [text(s)]))),
    )
    yield (
        "parts of long texts in full",
        lambda s: fused(
            replace(s, meaning=bench.meaning(s.framework, passages(text(s), kept=800)))
        ),
    )


def fused(scored: Scored, weight: float = LEXICAL_WEIGHT) -> Scores:
    scores = weight * scaled(scored.words) + (1 - weight) * scaled(scored.meaning)
    return scores - HEADING_PENALTY * np.maximum(scored.framework.heights - 1, 0)


def reciprocal(scored: Scored) -> Scores:
    places = (np.argsort(np.argsort(-side)) for side in (scored.words, scored.meaning))
    total: Scores = sum(1 / (60 + place) for place in places)  # type: ignore[assignment]
    return total


def text(scored: Scored) -> str:
    return str(scored.query["text"])


def other_text(bench: Bench, scored: Scored, text: str) -> Scored:
    return bench.score(scored.query, text) if text.strip() else scored


def named_grade(scored: Scored) -> Scores:
    named = set[str]()
    for grade, ordinal, word, kindergarten in _GRADE.findall(text(scored)):
        number = grade or ordinal or (word and str(_ORDINALS.index(word.lower()) + 1))
        named.add("K" if kindergarten else f"{int(number):02}")
    return np.array([bool(named & grades) for grades in scored.framework.grades], dtype=np.float32)


def with_parent(scored: Scored, share: float) -> Scored:
    above = scored.meaning[scored.framework.parents]
    return replace(scored, meaning=(1 - share) * scored.meaning + share * above)


def with_neighbours(scored: Scored) -> Scores:
    """Return .6 of each row's own score, and .1 of its parent's and of the mean of each group."""
    scores, framework = fused(scored), scored.framework
    parents, numbers = framework.parents, np.arange(len(scored.framework.rows))
    has_parent = parents != numbers
    sums, counts = np.zeros_like(scores), np.zeros_like(scores)
    np.add.at(sums, parents[has_parent], scores[has_parent])
    np.add.at(counts, parents[has_parent], 1)
    children = np.where(counts > 0, sums / np.maximum(counts, 1), scores)
    others = counts[parents] - 1
    has_siblings = has_parent & (others > 0)
    siblings = np.where(has_siblings, (sums[parents] - scores) / np.maximum(others, 1), scores)
    likeness = framework.vectors @ framework.vectors.T
    np.fill_diagonal(likeness, -1)
    nearest = scores[np.argsort(-likeness, axis=1)[:, :5]].mean(axis=1)
    mixed: Scores = 0.6 * scores + 0.1 * (scores[parents] + children + siblings + nearest)
    return mixed


def with_feedback(scored: Scored, share: float) -> Scored:
    best = np.argsort(-fused(scored))[:3]
    near = scored.framework.vectors @ scored.framework.vectors[best].mean(axis=0)
    return replace(scored, meaning=scored.meaning + share * near)


if __name__ == "__main__":
    main()
