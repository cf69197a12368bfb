"""Edit a set of standards by script, and remember every change: the truth for a comparison.

Kept statements change their punctuation, half of all get a new code, and what is new comes from
another framework of the subject. The edits know nothing of the words and weights of the comparison.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from standards_mcp_alignment.comparison.answers import Kind
from standards_mcp_alignment.comparison.statements import Statement, statement_of
from standards_mcp_catalog import StandardRecord
from standards_mcp_catalog.vocabulary.grades import SCHOOL_GRADES

_SYNONYMS: Final = {
    "identify": "recognize", "recognize": "spot", "explain": "describe", "describe": "tell about",
    "demonstrate": "show", "show": "illustrate", "use": "apply", "using": "with the help of",
    "understand": "grasp", "determine": "find out", "find": "work out", "solve": "work through",
    "compare": "contrast", "analyze": "examine", "evaluate": "judge", "create": "make",
    "develop": "build", "write": "compose", "read": "go through", "interpret": "make sense of",
    "represent": "model", "apply": "make use of", "students": "learners", "problems": "tasks",
    "text": "passage", "texts": "passages", "story": "narrative", "various": "different",
    "including": "among them", "such": "for instance", "between": "among", "numbers": "values",
    "number": "value", "information": "facts", "ideas": "thoughts", "main": "central",
    "details": "particulars", "events": "happenings", "relate": "connect", "know": "be aware of",
    "ask": "pose", "answer": "respond to", "recall": "remember", "measure": "gauge",
    "investigate": "explore", "construct": "build", "discuss": "talk about", "support": "back up",
    "effect": "impact", "effects": "impacts", "different": "several", "important": "key",
    "select": "choose", "perform": "carry out", "plan": "design", "draw": "sketch",
    "how": "the way in which", "world": "globe", "people": "persons", "through": "by way of",
}  # fmt: skip
_LEADS: Final = ("Students will ", "The learner can ", "By the end of the year, ")
_ADDED: Final = (
    " in a range of contexts", " with increasing independence", ", with and without technology",
    " in real-world and mathematical situations", ", giving reasons", " with accuracy",
)  # fmt: skip
_ASIDE: Final = re.compile(r"\s*\((?:e\.g\.|i\.e\.|for example|such as|including)[^()]*\)")
_CUT: Final = re.compile(r"(?:;| and|, and|,) +(?=[a-z])")
_MIN_WORDS: Final = 5
_LONGEST: Final = 60


@dataclass
class Edited:
    """An edition, its edited version, and the truth: kind, ids of the left, ids of the right."""

    left: list[Statement]
    right: list[Statement] = field(default_factory=list[Statement])
    truth: set[tuple[Kind, frozenset[str], frozenset[str]]] = field(
        default_factory=set[tuple[Kind, frozenset[str], frozenset[str]]]
    )


def edited(
    records: Sequence[StandardRecord],
    foreign: Sequence[StandardRecord],
    each_kind: int,
    seed: int,
) -> Edited:
    """Return the leaves of an edition with up to *each_kind* changes of each kind.

    Args:
        foreign: Records of other frameworks, for new statements.
    """
    rng = random.Random(seed)  # noqa: S311
    leaves = [each for each in records if each.is_leaf and _is_usable(each.description)]
    result = Edited([statement_of(each) for each in leaves])
    pool = list(leaves)
    rng.shuffle(pool)
    editor = _Editor(rng, result)
    makers: list[tuple[Kind, Callable[[list[StandardRecord]], bool]]] = [
        ("split", editor.split), ("merged", editor.merge), ("reworded", editor.reword),
        ("moved", editor.move), ("gone", editor.drop),
    ]  # fmt: skip
    for _, make in makers:
        made, skipped = 0, list[StandardRecord]()
        while pool and made < each_kind:
            before = list(pool)
            if make(pool):
                made += 1
            else:
                skipped.append(before[-1])
                pool.remove(before[-1])
        pool += skipped
    for record in pool:
        editor.keep(record)
    grades = {level for record in leaves for level in record.education_levels}
    usable = [each for each in foreign if each.is_leaf and _is_usable(each.description)]
    texts = {each.folded for each in result.left}
    for record in rng.sample(usable, min(each_kind, len(usable))):
        if statement_of(record).folded not in texts:
            editor.add(record, rng.choice(sorted(grades)) if grades else "")
    rng.shuffle(result.right)
    return result


def _is_usable(text: str) -> bool:
    return _MIN_WORDS <= len(text.split()) <= _LONGEST


class _Editor:
    def __init__(self, rng: random.Random, result: Edited) -> None:
        self._rng = rng
        self._result = result
        self._count = 0

    def keep(self, record: StandardRecord) -> None:
        text = record.description
        if self._rng.random() < 0.2:
            text = text.rstrip(".") if text.endswith(".") else f"{text}."
        self._change("kept", [record], [(text, record)])

    def reword(self, pool: list[StandardRecord]) -> bool:
        text = self._reworded(pool[-1].description)
        return self._edit("reworded", pool, [text] if text else [])

    def split(self, pool: list[StandardRecord]) -> bool:
        text = pool[-1].description
        middle = len(text) / 2
        cuts = [
            cut
            for cut in _CUT.finditer(text)
            if min(len(text[: cut.start()].split()), len(text[cut.end() :].split())) >= _MIN_WORDS
        ]
        if not cuts:
            return False
        cut = min(cuts, key=lambda each: abs(each.start() - middle))
        first, second = text[: cut.start()], text[cut.end() :].rstrip(".")
        if self._rng.random() < 0.5:
            second = f"{first.split()[0]} {second}"
        if self._rng.random() < 0.3:
            first = self._reworded(first) or first
        return self._edit("split", pool, [f"{first}.", f"{second[0].upper()}{second[1:]}."])

    def merge(self, pool: list[StandardRecord]) -> bool:
        one = pool[-1]
        mates = [
            each
            for each in pool[:-1]
            if each.education_levels == one.education_levels and each.parent_id == one.parent_id
        ]
        if not mates:
            return False
        other = self._rng.choice(mates)
        pool.remove(other)
        pool.pop()
        second = other.description
        if self._rng.random() < 0.3:
            second = self._reworded(second) or second
        joint = self._rng.choice(("; ", " and ", ". "))
        second = second if joint == ". " else second[0].lower() + second[1:]
        text = f"{one.description.rstrip('.')}{joint}{second}"
        self._change("merged", [one, other], [(text, one)])
        return True

    def move(self, pool: list[StandardRecord]) -> bool:
        record = pool[-1]
        levels = [
            SCHOOL_GRADES.index(each) for each in record.education_levels if each in SCHOOL_GRADES
        ]
        steps = [
            each
            for each in (*([max(levels) + 1, min(levels) - 1] if levels else []),)
            if 0 <= each < len(SCHOOL_GRADES)
        ]
        if not steps or len(levels) > 4:
            return False
        text = record.description
        if self._rng.random() < 0.3:
            text = self._reworded(text) or text
        moved = record.model_copy(
            update={"education_levels": (SCHOOL_GRADES[self._rng.choice(steps)],)}
        )
        self._change("moved", [pool.pop()], [(text, moved)])
        return True

    def drop(self, pool: list[StandardRecord]) -> bool:
        self._change("gone", [pool.pop()], [])
        return True

    def add(self, record: StandardRecord, level: str) -> None:
        levels = (level,) if level else ()
        self._change(
            "new",
            [],
            [(record.description, record.model_copy(update={"education_levels": levels}))],
        )

    def _edit(self, kind: Kind, pool: list[StandardRecord], texts: Sequence[str]) -> bool:
        if not texts:
            return False
        record = pool.pop()
        self._change(kind, [record], [(text, record) for text in texts])
        return True

    def _change(
        self,
        kind: Kind,
        left: Sequence[StandardRecord],
        right: Iterable[tuple[str, StandardRecord]],
    ) -> None:
        ids = list[str]()
        for text, record in right:
            self._count += 1
            statement = statement_of(
                record.model_copy(update={"description": text, "id": f"new-{self._count}"})
            )
            if kind == "new" or self._rng.random() < 0.5:
                statement = replace(statement, code=f"N.{self._rng.randrange(10_000)}")
            self._result.right.append(statement)
            ids.append(statement.id)
        self._result.truth.add((kind, frozenset(each.id for each in left), frozenset(ids)))

    def _reworded(self, text: str) -> str:
        """Return *text* in other words, or "" if too little can change."""
        rng = self._rng
        words = text.split(" ")
        places = [
            place for place, word in enumerate(words) if word.lower().strip(".,;") in _SYNONYMS
        ]
        for place in rng.sample(places, min(len(places), rng.randint(1, 4))):
            bare = words[place].lower().strip(".,;")
            other = _SYNONYMS[bare]
            new = words[place].lower().replace(bare, other)
            words[place] = new[0].upper() + new[1:] if words[place][0].isupper() else new
        changed = " ".join(words)
        if rng.random() < 0.5:
            changed = _ASIDE.sub("", changed)
        if rng.random() < 0.3:
            lead = rng.choice(_LEADS)
            changed = lead + changed[0].lower() + changed[1:]
        if rng.random() < 0.4:
            changed = changed.rstrip(".") + rng.choice(_ADDED) + "."
        if rng.random() < 0.3 and changed.count(", ") == 1:
            first, second = changed.rstrip(".").split(", ")
            changed = f"{second[0].upper()}{second[1:]}, {first[0].lower()}{first[1:]}."
        before, after = set(text.lower().split()), set(changed.lower().split())
        return changed if len(before ^ after) >= 2 else ""
