"""Run four systems on the benchmark, and print the tables of its README.

    python benchmarks/alignment/systems.py FOLDER [--systems NAME...] [--table]

FOLDER gets a run for each system, NAME.csv, which `score.py` reads. All search the same texts: a
standard with the headings above it. With --table, all runs in FOLDER are scored, also the runs of
other programs, and compared with `search`. `--systems` without a name runs none.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from corpus import Corpus, Kind, Question, Standard, read_corpus, read_questions, write_table
from score import (
    NAMES,
    NOTHING,
    Run,
    by_subject,
    compare,
    confusions,
    mean,
    measure_all,
    read_run,
    shown,
    table,
)

from standards_mcp_catalog import Catalog, open_local
from standards_mcp_encoders.minilm import shared_minilm
from standards_mcp_search.text_search import search_by_text

DEPTH: Final = 50
BASE: Final = "search"
TITLES: Final = {
    "fts5": "SQLite FTS5 (BM25, Porter stems)",
    "bm25": "BM25 over words",
    "encoder": "encoder alone (MiniLM, int8)",
    "search": "this search",
}

Texts = Sequence[str]
System = Callable[[Corpus, Texts], Iterator[list[str]]]
"""Yields for each text the codes that it finds, best first."""


def fts5(corpus: Corpus, texts: Texts) -> Iterator[list[str]]:
    """Search with SQLite: any of the words, in the order of its function bm25."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(
            "create virtual table standards using fts5"
            "(code unindexed, text, tokenize = 'porter unicode61')"
        )
        rows = [(standard.code, _full_text(standard)) for standard in corpus.standards.values()]
        database.executemany("insert into standards values (?, ?)", rows)
        select = "select code from standards where text match ? order by bm25(standards) limit ?"
        for text in texts:
            words = " OR ".join(f'"{word}"' for word in _words(text))
            yield [code for (code,) in database.execute(select, (words, DEPTH))]


def bm25(corpus: Corpus, texts: Texts) -> Iterator[list[str]]:
    """Search with BM25 (k1 = 1.2, b = .75) over words as they are written, without stems."""
    k1, b = 1.2, 0.75
    codes = list(corpus.standards)
    counts = [Counter(_words(_full_text(standard))) for standard in corpus.standards.values()]
    lengths = [count.total() for count in counts]
    average = sum(lengths) / len(lengths)
    frequencies = Counter(word for count in counts for word in count)
    rarity = {
        word: math.log(1 + (len(codes) - number + 0.5) / (number + 0.5))
        for word, number in frequencies.items()
    }

    def score(words: set[str], row: int) -> float:
        norm = k1 * (1 - b + b * lengths[row] / average)
        shared = ((word, counts[row][word]) for word in words if word in counts[row])
        return sum(rarity[word] * times * (k1 + 1) / (times + norm) for word, times in shared)

    for text in texts:
        words = set(_words(text))
        scores = {row: score(words, row) for row in range(len(codes))}
        best = sorted(scores, key=lambda row: -scores[row])[:DEPTH]
        yield [codes[row] for row in best if scores[row]]


def encoder(corpus: Corpus, texts: Texts) -> Iterator[list[str]]:
    """Search by the cosines of the built-in encoder, with the text of each standard alone."""
    codes, minilm = list(corpus.standards), shared_minilm()
    vectors = minilm.encode([standard.text for standard in corpus.standards.values()])
    for text in texts:
        cosines = vectors @ minilm.encode([text])[0]
        yield [codes[row] for row in np.argsort(-cosines, kind="stable")[:DEPTH]]


def search(_: Corpus, texts: Texts) -> Iterator[list[str]]:
    """Search as the tool `find_relevant_standards` does, in a new catalog."""
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_search(open_local(Path(folder), "minilm"), texts))


async def _search(catalog: Catalog, texts: Texts) -> list[list[str]]:
    ask = partial(
        search_by_text, count=DEPTH, base_filter=None, reads_grade=True, reads_subject=True
    )
    try:
        answers = [await ask(catalog, text) for text in texts]
    finally:
        await catalog.aclose()
    return [
        [hit.record.statement_notation or hit.record.id for hit in answer.result.hits]
        for answer in answers
    ]


SYSTEMS: Final[dict[str, System]] = {
    "fts5": fts5,
    "bm25": bm25,
    "encoder": encoder,
    "search": search,
}


def _full_text(standard: Standard) -> str:
    return f"{standard.context} {standard.text}"


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def write_run(path: Path, system: System, corpus: Corpus, questions: Sequence[Question]) -> None:
    """Ask a system all questions and write its run."""
    answers = system(corpus, [question.text for question in questions])
    rows = (
        (question.id, rank, code)
        for question, codes in zip(questions, answers, strict=True)
        for rank, code in enumerate(codes, start=1)
    )
    write_table(path, ("id", "rank", "code"), rows)


def tables(runs: dict[str, Run], corpus: Corpus, questions: Sequence[Question]) -> Iterator[str]:
    """Yield the tables of quality, of recall@5 by subject, of confusions and of differences."""
    splits = {
        split: [question for question in questions if question.split == split]
        for split in ("test", "dev")
    }
    for split, asked in splits.items():
        rows = [[_title(name), *shown(mean(measure_all(run, asked)))] for name, run in runs.items()]
        yield table([f"{split}, {len(asked)} questions", *NAMES], rows)
    test = splits["test"]
    scored = {name: by_subject(run, test) for name, run in runs.items()}
    subjects = [f"{name} ({len(found)})" for name, found in next(iter(scored.values())).items()]
    rows = [
        [_title(name), *(f"{mean(found).recall_5:.3f}" for found in groups.values())]
        for name, groups in scored.items()
    ]
    yield table(["recall@5, test", *subjects], rows)
    kinds = {name: confusions(run, test, corpus) for name, run in runs.items()}
    rows = [[_title(name), *map(str, counts.values())] for name, counts in kinds.items()]
    yield table(["first result, test", *Kind, NOTHING], rows)
    if BASE in runs:
        rows = [
            [_title(name), *(" ".join(row[1:]) for row in compare(runs[BASE], run, test))]
            for name, run in runs.items()
            if name != BASE
        ]
        yield table([f"{_title(BASE)} minus, test", *NAMES], rows)


def _title(name: str) -> str:
    return TITLES.get(name, name)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--systems", nargs="*", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--table", action="store_true", help="score all runs in FOLDER")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    corpus, questions = read_corpus(), read_questions()
    for name in arguments.systems:
        write_run(folder / f"{name}.csv", SYSTEMS[name], corpus, questions)
    if arguments.table:
        ids = {question.id for question in questions}
        names = sorted((path.stem for path in folder.glob("*.csv")), key=_order)
        runs = {name: read_run(folder / f"{name}.csv", corpus, ids) for name in names}
        print(*tables(runs, corpus, questions), sep="\n\n")


def _order(name: str) -> tuple[int, str]:
    names = list(SYSTEMS)
    return (names.index(name) if name in names else len(names), name)


if __name__ == "__main__":
    main()
