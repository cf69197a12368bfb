"""The review file: a table in which a person accepts, rejects and replaces standards."""

from __future__ import annotations

import csv
import io
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from standards_mcp import InvalidInputError
from standards_mcp.files import replacing
from standards_mcp_alignment.inputs.items import InputError
from standards_mcp_alignment.inputs.tables import decoded, dialect_of

from .outcomes import Outcome, spreadsheet_cell

Choice: TypeAlias = Literal["accept", "reject", "replace"]
COLUMNS: Final = (
    "decision", "replacement", "title", "code", "statement", "probability", "status", "file",
    "place", "id", "item", "standard",
)  # fmt: skip
_NEEDED: Final = {"decision", "replacement", "item", "standard"}
_CHOICES: Final[Mapping[str, Choice]] = {
    **dict.fromkeys(("accept", "accepted", "a", "yes", "y"), "accept"),
    **dict.fromkeys(("reject", "rejected", "r", "no", "n"), "reject"),
    "replace": "replace",
    "replaced": "replace",
}
_KEY_LENGTH: Final = 16
_LARGEST: Final = 100_000_000

ReviewKey: TypeAlias = tuple[str, str]
"""The beginning of the digest of an item, and the id of a standard."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person wrote in one row.

    Attributes:
        replacement: Code or id of the standard that fits, for ``replace``.
        row: The cells of the row by their columns, to write it back.
    """

    choice: Choice
    replacement: str
    row: Mapping[str, str]


def review_key(item_digest: str, standard_id: str) -> ReviewKey:
    """Return the key of a decision."""
    # Spreadsheets change 16 digits, or such as 123e456, to a rounded number.
    return f"i-{item_digest[:_KEY_LENGTH]}", standard_id


def read_review(path: Path) -> dict[ReviewKey, Decision]:
    """Return the decisions in a review file, which need not exist.

    Raises:
        InvalidInputError: The file is not a review file, or a row has an unknown decision.
        OSError: The file cannot be read.
    """
    try:
        # A pipe or a device might never end.
        if not stat.S_ISREG((status := path.stat()).st_mode):
            raise InvalidInputError(f"{path} is no regular file; name a CSV file with --review")
        if status.st_size > _LARGEST:
            raise InvalidInputError(f"{path} is larger than {_LARGEST // 1_000_000} MB; split it")
        text = decoded(path.read_bytes())
    except FileNotFoundError:
        return {}
    except InputError as error:
        raise InvalidInputError(f"{path}, line 1: {error}, as CSV") from None
    # Strict, because an open quotation mark would swallow the decisions in the rows below it.
    lines = io.StringIO(text, newline="")
    rows = csv.DictReader(lines, dialect=dialect_of(text), strict=True)
    try:
        return _decisions(path, rows)
    except csv.Error as error:
        line = rows.reader.line_num
        raise InvalidInputError(f"{path}, line {line}: it is not a table: {error}") from None


def _decisions(path: Path, rows: csv.DictReader[str]) -> dict[ReviewKey, Decision]:
    if missing := _NEEDED - set(rows.fieldnames or ()):
        raise InvalidInputError(
            f"{path} is not a review file: it has no column {min(missing)!r}. Name another file "
            "with --review."
        )
    decisions: dict[ReviewKey, Decision] = {}
    for row in rows:
        cells = {name: (row.get(name) or "").strip() for name in COLUMNS}
        word = cells["decision"].casefold()
        if not word and not cells["replacement"]:
            continue
        # A replacement without a word in front of it can mean only one thing.
        choice = _CHOICES.get(word) if word else "replace"
        if choice is None:
            raise InvalidInputError(
                f"{path}, line {rows.line_num}: the decision is {word[:40]!r}; write accept, "
                "reject or replace"
            )
        if choice == "replace" and not cells["replacement"]:
            raise InvalidInputError(
                f"{path}, line {rows.line_num}: write the code that fits into the column "
                "'replacement'"
            )
        key = cells["item"], cells["standard"]
        decisions[key] = Decision(choice, cells["replacement"], cells)
    return decisions


def write_review(
    path: Path, outcomes: Iterable[Outcome], decisions: Mapping[ReviewKey, Decision]
) -> int:
    """Write a row for each pair, with the decisions so far, and return how many are open.

    Decisions on items and standards that are not among the outcomes are kept at the end, because
    the next run may have them again.

    Raises:
        OSError: The file cannot be written; the old one is unchanged.
    """
    rows: list[dict[str, str]] = []
    open_rows = 0
    written: set[ReviewKey] = set()
    for outcome in outcomes:
        for row in review_rows(outcome):
            key = row["item"], row["standard"]
            if key in written:
                continue  # two files have the same lesson
            written.add(key)
            decision = decisions.get(key)
            if decision is not None:
                row |= {name: decision.row[name] for name in ("decision", "replacement")}
            elif row["status"] == "proposed":
                open_rows += 1
            rows.append(row)
    rows += [dict(decision.row) for key, decision in decisions.items() if key not in written]
    with replacing(path) as file:
        file.write("\ufeff")  # without this mark, spreadsheets read UTF-8 as another encoding
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow({name: spreadsheet_cell(row[name]) for name in COLUMNS})
    return open_rows


def review_rows(outcome: Outcome) -> Sequence[dict[str, str]]:
    """Return the rows of an item, without decisions. Standards that a person added get no row."""
    item = outcome.item
    return [
        {
            "decision": "",
            "replacement": "",
            "title": item.title,
            "code": verdict.pair.code,
            "statement": verdict.pair.statement,
            "probability": _number(verdict.pair.probability),
            "status": verdict.status,
            "file": item.file,
            "place": item.place,
            "id": item.id,
            "item": review_key(item.digest, "")[0],
            "standard": verdict.pair.id,
        }
        for verdict in outcome.verdicts
        if verdict.pair.basis != "review"
    ]


def _number(probability: float | None) -> str:
    return "" if probability is None else f"{probability:.2f}"
