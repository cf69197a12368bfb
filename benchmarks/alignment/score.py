"""Score runs of the benchmark: quality by subject, kinds of confusion, and their differences.

    python benchmarks/alignment/score.py RUN [OTHER] [--split test|dev|all] [--questions FILE]

A run is a CSV file with the columns `id`, `rank` and `code`: the id of a question, 1 for the best
standard, 2 for the next, and the standard's code as in `corpus.csv`. A question that a run leaves
out counts as answered by nothing. With OTHER, the differences RUN - OTHER are printed with
intervals of 95 %, by a paired bootstrap over the questions.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from corpus import QUESTIONS, Corpus, Kind, Question, read_corpus, read_questions

Run = Mapping[str, Sequence[str]]
"""For each question the codes that a system found, best first."""

NOTHING: Final = "nothing"
SAMPLES: Final = 4000
_COLUMNS: Final = {"id", "rank", "code"}
_DEPTH: Final = 10


class Measures(NamedTuple):
    """The quality of an answer, or the means of several."""

    recall_1: float
    recall_5: float
    ndcg_10: float
    mrr: float


NAMES: Final = ("recall@1", "recall@5", "nDCG@10", "MRR")
"""The names of `Measures`, as they are printed."""


def measure(ranked: Sequence[str], right: str) -> Measures:
    """Return the quality of an answer; one standard is right."""
    if right not in ranked:
        return Measures(0, 0, 0, 0)
    rank = ranked.index(right) + 1
    gain = 1 / math.log2(rank + 1) if rank <= _DEPTH else 0
    return Measures(float(rank == 1), float(rank <= 5), gain, 1 / rank)


def mean(measures: Sequence[Measures]) -> Measures:
    return Measures(*(sum(column) / len(measures) for column in zip(*measures, strict=True)))


def measure_all(run: Run, questions: Sequence[Question]) -> list[Measures]:
    """Return the quality of each answer, in the order of the questions."""
    return [measure(run.get(question.id, ()), question.code) for question in questions]


def by_subject(run: Run, questions: Sequence[Question]) -> dict[str, list[Measures]]:
    """Return the quality of each answer by subject, and of all of them last."""
    groups = defaultdict[str, list[Measures]](list)
    measures = measure_all(run, questions)
    for question, found in zip(questions, measures, strict=True):
        groups[question.subject].append(found)
    return {**dict(sorted(groups.items())), "all": measures}


def confusions(run: Run, questions: Sequence[Question], corpus: Corpus) -> Counter[str]:
    """Count how the first standard of each answer is related to the right one."""
    kinds = Counter[str](dict.fromkeys((*Kind, NOTHING), 0))
    for question in questions:
        first = next(iter(run.get(question.id, ())), None)
        kinds[corpus.kind(question.code, first) if first else NOTHING] += 1
    return kinds


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return the interval of 95 % of a mean, by resampling with a fixed seed."""
    draw = random.Random(1)  # noqa: S311
    count = len(differences)
    means = sorted(sum(draw.choices(differences, k=count)) / count for _ in range(SAMPLES))
    return means[round(SAMPLES * 0.025)], means[round(SAMPLES * 0.975) - 1]


def compare(run: Run, other: Run, questions: Sequence[Question]) -> Iterator[list[str]]:
    """Yield for each measure its name, the mean difference and the interval of the mean."""
    pairs = zip(measure_all(run, questions), measure_all(other, questions), strict=True)
    columns = zip(
        *(tuple(a - b for a, b in zip(*pair, strict=True)) for pair in pairs), strict=True
    )
    for name, differences in zip(NAMES, columns, strict=True):
        low, high = interval(differences)
        difference = sum(differences) / len(differences)
        yield [name, f"{difference:+.3f}", f"[{low:+.3f}, {high:+.3f}]"]


def read_run(path: Path, corpus: Corpus, ids: set[str]) -> Run:
    """Read a run, and stop with a message if it does not fit the benchmark."""
    with path.open(encoding="utf-8", newline="") as file:
        table = csv.DictReader(file)
        if missing := sorted(_COLUMNS - set(table.fieldnames or ())):
            raise SystemExit(f"{path}: the column {missing[0]} is missing; use id, rank, code")
        rows = list(table)
    ranked = defaultdict[str, dict[int, str]](dict)
    for line, row in enumerate(rows, start=2):
        problem = _problem(row, corpus, ids)
        if not problem and int(row["rank"]) in ranked[row["id"]]:
            problem = f"rank {row['rank']} of {row['id']} occurs twice"
        if problem:
            raise SystemExit(f"{path}, line {line}: {problem}")
        ranked[row["id"]][int(row["rank"])] = row["code"]
    return {id_: [codes[rank] for rank in sorted(codes)] for id_, codes in ranked.items()}


def _problem(row: Mapping[str, str], corpus: Corpus, ids: set[str]) -> str:
    if row["id"] not in ids:
        return f"unknown id {row['id']!r}; questions.csv has the ids"
    if not (row["rank"] or "").isdecimal() or int(row["rank"]) < 1:
        return f"rank {row['rank']!r} is not a whole number from 1"
    if row["code"] not in corpus.standards:
        return f"unknown code {row['code']!r}; corpus.csv has the codes"
    return ""


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    rule = ["---"] * len(header)
    return "\n".join(f"| {' | '.join(row)} |" for row in chain((header, rule), rows))


def shown(measures: Measures) -> list[str]:
    return [f"{value:.3f}" for value in measures]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("other", type=Path, nargs="?")
    parser.add_argument("--split", choices=["test", "dev", "all"], default="test")
    parser.add_argument("--questions", type=Path, default=QUESTIONS)
    arguments = parser.parse_args()
    corpus = read_corpus()
    ids = {question.id for question in read_questions(arguments.questions)}
    questions = read_questions(arguments.questions, arguments.split)
    if not questions:
        raise SystemExit(f"{arguments.questions} has no questions of the split {arguments.split}")
    run = read_run(arguments.run, corpus, ids)
    groups = by_subject(run, questions)
    rows = [[name, str(len(found)), *shown(mean(found))] for name, found in groups.items()]
    print(table(["subject", "questions", *NAMES], rows), end="\n\n")
    kinds = confusions(run, questions, corpus)
    shares = [[kind, str(count), f"{count / len(questions):.1%}"] for kind, count in kinds.items()]
    print(table(["first result", "questions", "share"], shares))
    if arguments.other:
        other = read_run(arguments.other, corpus, ids)
        rows = list(compare(run, other, questions))
        print("", table(["measure", "difference", "95 %"], rows), sep="\n")


if __name__ == "__main__":
    main()
