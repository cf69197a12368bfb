"""Career: precision and recall of *met*, for both settings of ``tokens``.

usage: .venv-career/bin/python benchmarks/career_evidence.py [--shares] [--failures]

The pairs are in plugins/career/tests/matching: the rule was chosen on the 200 of evidence.csv, and
is measured on the 100 of evidence_unseen.csv. Never choose anything by the unseen ones. The 117 of
evidence_numbers.csv are about numbers alone; the first 62 were written before the rule for them.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from standards_mcp_career.language.evidence import MIN_SHARE, judge, parse_atom, parse_requirement
from standards_mcp_career.primitives import tokens

PAIRS: Final = Path(__file__).parents[1] / "plugins" / "career" / "tests" / "matching"
SHARES: Final = (0.5, 0.6, 0.66, 0.75, 0.8, 1.0)


class Pair(NamedTuple):
    """A requirement and a claim, with the label that a person gave."""

    met: str
    kind: str
    requirement: str
    evidence: str


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shares", action="store_true", help="compare shares on the 200 pairs")
    parser.add_argument("--failures", action="store_true", help="list wrong verdicts of the 200")
    arguments = parser.parse_args()
    for name in ("evidence.csv", "evidence_unseen.csv", "evidence_numbers.csv"):
        pairs = list(_pairs(name))
        print(f"{name}: {len(pairs)} pairs, {sum(each.met == 'yes' for each in pairs)} met")
        print(f"   original           {_figures(pairs, _by_original)}")
        print(f"   meaningful, {MIN_SHARE}   {_figures(pairs, _by_meaning)}")
    known = list(_pairs("evidence.csv"))
    for share in SHARES if arguments.shares else ():
        print(f"   share {share}   {_figures(known, partial(_by_meaning, share=share))}")
    for pair in known if arguments.failures else ():
        if _by_meaning(pair) != (pair.met == "yes"):
            print(f"   {pair.met} ({pair.kind}): {pair.requirement} | {pair.evidence}")


def _pairs(name: str) -> Iterator[Pair]:
    with (PAIRS / name).open(encoding="utf-8", newline="") as file:
        yield from (Pair(**row) for row in csv.DictReader(file))


def _by_original(pair: Pair) -> bool:
    return bool(set(tokens(pair.requirement)).intersection(tokens(pair.evidence)))


def _by_meaning(pair: Pair, share: float = MIN_SHARE) -> bool:
    return (
        judge(parse_requirement(pair.requirement), parse_atom(pair.evidence, "", ()), share).share
        > 0
    )


def _figures(pairs: list[Pair], is_met: Callable[[Pair], bool]) -> str:
    told = [each for each in pairs if is_met(each)]
    right = sum(each.met == "yes" for each in told)
    precision, recall = right / len(told), right / sum(each.met == "yes" for each in pairs)
    return f"precision {precision:.3f}, recall {recall:.3f}"


if __name__ == "__main__":
    main()
