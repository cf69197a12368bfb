"""F1 of the kinds of changes that `compare_standards` finds.

usage: python benchmarks/compare_standards.py [--corpus C.jsonl.gz] [--chicago PACKAGE.json.gz]

Edits 500 standards for each kind of change by script and compares the result with the original: the
starter set, and frameworks of the corpus that were not used to choose the weights (--dev uses those
that were). With the CASE package of Chicago, whose items state `exactMatchOf` with items of the
Common Core, it compares both without these statements, with codes and without.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from _edited_standards import Edited, edited
from retrieval import lines

from standards_mcp_alignment.comparison.answers import KINDS
from standards_mcp_alignment.comparison.changes import Change, changes_of
from standards_mcp_alignment.comparison.pairing import paired
from standards_mcp_alignment.comparison.statements import statement_of
from standards_mcp_catalog import StandardRecord
from standards_mcp_catalog.starter import starter_records
from standards_mcp_catalog.vocabulary.notation import guid_of
from standards_mcp_encoders import open_encoder

DEV = ("CO-Mathematics", "MD-reading", "AL-ELA-2021", "MD-science", "CO-Social Studies")
HELD_OUT = (
    "CCSS-Math", "FL-BEST-ELA", "AK-Math", "NGSS", "CA-HSS-1998", "CO-Science", "MD-history",
    "DC-science", "PA-english", "CO-Comprehensive Health", "KY-Math", "MD-math",
)  # fmt: skip
EACH_KIND = 500
_EDITED_SUBJECTS = ("Mathematics", "English Language Arts")
"""New standards come from the other subjects of the starter set."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--chicago", type=Path)
    parser.add_argument("--dev", action="store_true")
    arguments = parser.parse_args()
    if not arguments.dev:
        sides = {True: list[StandardRecord](), False: list[StandardRecord]()}
        for record in starter_records():
            sides[record.subject in _EDITED_SUBJECTS].append(record)
        _report("starter set", _rounds([sides[True]], sides[False]))
    if arguments.corpus:
        frameworks = defaultdict[str, list[StandardRecord]](list)
        for line in lines(arguments.corpus):
            frameworks[line["standard_set_id"]].append(StandardRecord.from_dict(line))
        names = DEV if arguments.dev else HELD_OUT
        others = [each for name in frameworks if name not in names for each in frameworks[name]]
        _report(", ".join(names), _rounds([frameworks[name] for name in names], others))
        _paraphrases(frameworks["CCSS-Math"] + frameworks["CCSS-ELA"])
        if arguments.chicago:
            stating = _stating(arguments.chicago)
            chicago = [each for each in frameworks["IL-CPS-ELA"] if guid_of(each.id) in stating]
            _exact_matches(chicago, frameworks["CCSS-ELA"])


def _rounds(
    frameworks: Sequence[Sequence[StandardRecord]], others: Sequence[StandardRecord]
) -> Iterable[Edited]:
    """Yield edited frameworks in turn until each kind has `EACH_KIND` changes."""
    counts = Counter[str]()
    for seed in count():
        records = frameworks[seed % len(frameworks)]
        subject, own = records[0].subject, {each.standard_set_id for each in records}
        foreign = [
            each for each in others if each.subject == subject and each.standard_set_id not in own
        ] or [each for each in others if each.subject != subject]
        wanted = max(1, min(len(records) // 12, EACH_KIND))
        result = edited(records, foreign, wanted, seed)
        counts.update(kind for kind, _, _ in result.truth)
        yield result
        if all(counts[kind] >= EACH_KIND for kind in KINDS):
            return


def _report(name: str, rounds: Iterable[Edited]) -> None:
    encode = open_encoder("minilm").encode
    right, found, true = Counter[str](), Counter[str](), Counter[str]()
    seconds, total = 0.0, 0
    confusion = Counter[tuple[str, str]]()
    for each in rounds:
        began = time.perf_counter()
        changes = changes_of(each.left, each.right, paired(each.left, each.right, [], encode))
        seconds += time.perf_counter() - began
        total += len(each.left) + len(each.right)
        predicted = {_key(change) for change in changes}
        right.update(kind for kind, _, _ in predicted & each.truth)
        found.update(kind for kind, _, _ in predicted)
        true.update(kind for kind, _, _ in each.truth)
        kinds_of = {id_: kind for kind, ones, others in predicted for id_ in (*ones, *others)}
        for kind, ones, others in each.truth - predicted:
            confusion.update({(kind, kinds_of[id_]) for id_ in (*ones, *others)})
    print(f"{name}: {total:,} standards in {seconds:.1f} s")
    for kind in KINDS:
        precision, recall = right[kind] / max(found[kind], 1), right[kind] / max(true[kind], 1)
        f1 = 2 * right[kind] / max(found[kind] + true[kind], 1)
        print(
            f"  {kind:9} {true[kind]:5}  precision {precision:.3f}  recall {recall:.3f}  "
            f"F1 {f1:.3f}"
        )
    print(
        "  missed as:",
        ", ".join(f"{one}>{other} {n}" for (one, other), n in confusion.most_common(12)),
    )


def _key(change: Change) -> tuple[str, frozenset[str], frozenset[str]]:
    return (
        change.kind,
        frozenset(each.id for each in change.left),
        frozenset(each.id for each in change.right),
    )


def _paraphrases(official: Sequence[StandardRecord]) -> None:
    """Pair the starter set with the official texts of the same standards, without their codes."""
    encode = open_encoder("minilm").encode
    own = {each.id: each for each in starter_records()}
    both = [each for each in official if each.id in own]
    left = [replace(statement_of(each), code="") for each in both]
    right = [
        replace(statement_of(own[each.id].model_copy(update={"id": f"own-{each.id}"})), code="")
        for each in both
    ]
    pairs = [
        (each.left[0].id, each.right[0].id.removeprefix("own-"))
        for each in paired(left, right, [], encode)
        if len(each.left) == len(each.right) == 1
    ]
    right_ones = sum(one == other for one, other in pairs)
    print(
        f"official texts and paraphrases of {len(both)} standards, no codes: {len(pairs)} pairs, "
        f"{right_ones} right"
    )


def _stating(package: Path) -> set[str | None]:
    """Return the GUIDs of the items of a CASE package that state an exact match."""
    data = json.loads(gzip.decompress(package.read_bytes()))
    return {
        guid_of(each["originNodeURI"]["identifier"])
        for each in data["CFAssociations"]
        if each["associationType"] == "exactMatchOf"
    }


def _exact_matches(chicago: Sequence[StandardRecord], core: Sequence[StandardRecord]) -> None:
    """Compare Chicago's ELA with the Common Core; an item is kept as the item with its code."""
    encode = open_encoder("minilm").encode
    for name, codes in (("with codes", True), ("without codes", False)):
        sides = [[statement_of(each) for each in side] for side in (chicago, core)]
        code_of = {each.id: each.code for side in sides for each in side}
        own_codes = {each.code for each in sides[0] if each.code}
        true = sum(each.code in own_codes for each in sides[1])
        if not codes:
            sides = [[replace(each, code="") for each in side] for side in sides]
        changes = changes_of(*sides, paired(*sides, [], encode))
        for kinds in (("kept",), ("kept", "reworded")):
            found = [each for each in changes if each.kind in kinds]
            right = sum(
                code_of[each.left[0].id] == code_of[each.right[0].id] != "" for each in found
            )
            f1 = 2 * right / (len(found) + true)
            print(
                f"exactMatchOf, {name}, {' or '.join(kinds)}: {true} true, {len(found)} found, "
                f"{right} right, F1 {f1:.3f}"
            )


if __name__ == "__main__":
    main()
