"""The answer of ``compare_standards``: data for programs, and Markdown for people."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from standards_mcp_alignment.answers import Digests
from standards_mcp_alignment.markdown import inline
from standards_mcp_catalog.vocabulary.grades import spoken_levels

from .answers import KINDS, Action, ChangeAnswer, ComparisonAnswer, Kind, Reference, Task
from .changes import Change
from .editions import Edition
from .statements import Statement
from .wording import marked, marked_up, word_diff

_MOST_CHARACTERS: Final = 200
_MOST_ROWS: Final = 40
_TITLES: Final[dict[Kind, str]] = {
    "reworded": "Reworded", "moved": "Moved to another grade", "split": "Split",
    "merged": "Merged", "new": "New", "gone": "Gone", "kept": "Kept",
}  # fmt: skip


def comparison_answer(
    editions: tuple[Edition, Edition],
    changes: Sequence[Change],
    levels: Sequence[str],
    notes: Sequence[str],
    digests: Digests,
    *,
    with_kept: bool,
) -> ComparisonAnswer:
    """Return the structured answer, of the changes that concern *levels* if there are any."""
    shown = [each for each in changes if not levels or _concerns(each, levels)]
    counted = Counter(each.kind for each in shown)
    counts: dict[Kind, int] = {kind: counted[kind] for kind in KINDS}
    listed = [each for each in shown if with_kept or each.kind != "kept"]
    where = f" in grade {spoken_levels(levels)}" if levels else ""
    summary = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    answer: ComparisonAnswer = {
        "success": True,
        "message": f"From {editions[0].name} to {editions[1].name}{where}: {summary or 'nothing'}.",
        "left": editions[0].name,
        "right": editions[1].name,
        "grades": list(levels),
        "counts": counts,
        "changes": [_change(each) for each in listed],
        "notes": list(notes),
        "digests": digests,
    }
    if levels:
        answer["for_teacher"] = _tasks(shown, levels)
    return answer


def _concerns(change: Change, levels: Collection[str]) -> bool:
    return any(not each.levels.isdisjoint(levels) for each in (*change.left, *change.right))


def _change(change: Change) -> ChangeAnswer:
    answer: ChangeAnswer = {
        "kind": change.kind,
        "left": [_reference(each) for each in change.left],
        "right": [_reference(each) for each in change.right],
        "basis": change.basis,
    }
    if change.score < 1:
        answer["score"] = change.score
    if change.is_reworded:
        answer["diff"] = marked(word_diff(change.left[0].text, change.right[0].text))
    return answer


def _reference(statement: Statement) -> Reference:
    record = statement.record
    return {
        "code": record.statement_notation or "",
        "_id": record.id,
        "text": textwrap.shorten(statement.text, _MOST_CHARACTERS, placeholder=" ..."),
        "grades": spoken_levels(record.education_levels),
    }


def _tasks(changes: Iterable[Change], levels: Collection[str]) -> list[Task]:
    tasks = list[Task]()
    for change in changes:
        before = [each for each in change.left if not each.levels.isdisjoint(levels)]
        after = [each for each in change.right if not each.levels.isdisjoint(levels)]
        tasks += _tasks_of(change, before, after)
    return tasks


def _tasks_of(
    change: Change, before: Sequence[Statement], after: Sequence[Statement]
) -> list[Task]:
    """Return the tasks of one change.

    Args:
        before: The standards of the grade in the left edition.
        after: The standards of the grade in the right edition.
    """
    if change.kind in ("kept", "reworded") or (before and after):
        if change.kind == "kept":
            return []
        old = _names(change.left)
        why = {
            "reworded": f"the wording of {old} changed", "split": f"a part of {old}",
            "merged": f"joins {old}",
        }.get(change.kind, f"replaces {old}")  # fmt: skip
        return [_task("revise", each, why) for each in after or before]
    if after:
        old = f"comes from {_names(change.left)}" if change.left else "is new"
        return [_task("add", each, old) for each in after]
    new = f"is now {_names(change.right)}" if change.right else "is gone"
    return [_task("drop", each, new) for each in before]


def _task(action: Action, statement: Statement, why: str) -> Task:
    reference = _reference(statement)
    return {"action": action, "code": reference["code"], "text": reference["text"], "why": why}


def _names(statements: Iterable[Statement]) -> str:
    names = list[str]()
    for each in statements:
        grades = spoken_levels(each.record.education_levels)
        name = each.record.statement_notation or textwrap.shorten(each.text, 40, placeholder=" ...")
        names.append(f"{name} (grade {grades})" if grades else name)
    return " and ".join(names)


def as_markdown(answer: ComparisonAnswer, changes: Iterable[Change]) -> str:
    """Return the answer for people.

    Args:
        changes: All changes; those that the answer does not list are left out.
    """
    lines = [f"**{inline(answer['message'], 600)}**"]
    if tasks := answer.get("for_teacher"):
        lines += ["", f"A teacher of grade {spoken_levels(answer['grades'])} has to:", ""]
        lines += [f"- {_task_line(each)}" for each in tasks[:_MOST_ROWS]]
        lines += _more(len(tasks))
    listed = {_ids(each): each for each in changes}
    by_kind: dict[Kind, list[Change]] = {kind: [] for kind in KINDS}
    for each in answer["changes"]:
        ids = tuple(reference["_id"] for reference in (*each["left"], *each["right"]))
        by_kind[each["kind"]].append(listed[ids])
    for kind, group in by_kind.items():
        if group:
            lines += ["", f"### {_TITLES[kind]} ({len(group)})", ""]
            lines += [f"- {_change_line(each)}" for each in group[:_MOST_ROWS]]
            lines += _more(len(group))
    return "\n".join([*lines, "", *answer["notes"]]).rstrip()


def _ids(change: Change) -> tuple[str, ...]:
    return tuple(each.id for each in (*change.left, *change.right))


def _task_line(task: Task) -> str:
    standard = inline(f"{task['code']} {task['text']}", 120)
    return f"{task['action']} {standard} ({inline(task['why'])})"


def _change_line(change: Change) -> str:
    if change.is_reworded:
        one, other = change.left[0], change.right[0]
        names = " → ".join(dict.fromkeys(inline(_names([each])) for each in (one, other)))
        line = f"{names}: {marked_up(word_diff(one.text, other.text))}"
    else:
        sides = (change.left, change.right[:1] if change.kind == "kept" else change.right)
        line = " → ".join(" + ".join(map(_shown, side)) for side in sides if side)
    is_plain = change.kind in ("new", "gone", "kept")
    return line if is_plain else f"{line} [{inline(change.basis)}]"


def _shown(statement: Statement) -> str:
    grades = spoken_levels(statement.record.education_levels)
    name = inline(f"{statement.record.statement_notation or ''} {statement.text}", 120)
    return f"{name} (grade {grades})" if grades else name


def _more(count: int) -> list[str]:
    more = count - _MOST_ROWS
    return [f"- and {more} more, in the structured answer"] if more > 0 else []
