"""Two editions of an invented state, compared as a client asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from standards_mcp_alignment.comparison.wording import marked, marked_up, word_diff
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_encoders.spec import MINILM_NAME

EDITIONS = {"left": "Aland 2010", "right": "Aland 2020"}


def changes(answer: dict[str, Any]) -> dict[str, list[tuple[list[str], list[str]]]]:
    """Return the codes on both sides of each change, by kind."""
    found: dict[str, list[tuple[list[str], list[str]]]] = {}
    for each in answer["changes"]:
        sides = ([ref["code"] for ref in each["left"]], [ref["code"] for ref in each["right"]])
        found.setdefault(each["kind"], []).append(sides)
    return found


def test_every_kind_of_change_is_found(ask: Any, two_editions: LocalCatalog) -> None:
    answer = ask(two_editions, "compare_standards", **EDITIONS)
    assert changes(answer.structured) == {
        "reworded": [(["3.F.2"], ["3.F.2"])],
        "moved": [(["3.F.3"], ["4.F.9"])],
        "split": [(["3.M.2"], ["3.M.2a", "3.M.2b"])],
        "merged": [(["3.M.3", "3.M.4"], ["3.M.3"])],
        "new": [([], ["3.P.1"])],
        "gone": [(["3.M.5"], [])],
    }
    assert answer.structured["counts"]["kept"] == 6


def test_the_way_back_turns_every_change_around(ask: Any, two_editions: LocalCatalog) -> None:
    answer = ask(two_editions, "compare_standards", left="Aland 2020", right="Aland 2010")
    found = changes(answer.structured)
    assert found["merged"] == [(["3.M.2a", "3.M.2b"], ["3.M.2"])]
    assert found["split"] == [(["3.M.3"], ["3.M.3", "3.M.4"])]
    assert found["gone"] == [(["3.P.1"], [])]


def test_kept_standards_are_listed_in_full_detail(ask: Any, two_editions: LocalCatalog) -> None:
    answer = ask(two_editions, "compare_standards", **EDITIONS, detail="full").structured
    assert len(changes(answer)["kept"]) == answer["counts"]["kept"] == 6


def test_a_teacher_of_one_grade_gets_tasks(ask: Any, two_editions: LocalCatalog) -> None:
    third = ask(two_editions, "compare_standards", **EDITIONS, grade="3")
    fourth = ask(two_editions, "compare_standards", **EDITIONS, grade=4)
    tasks = {(each["action"], each["code"]) for each in third.structured["for_teacher"]}
    assert tasks == {
        ("revise", "3.F.2"), ("drop", "3.F.3"), ("revise", "3.M.2a"), ("revise", "3.M.2b"),
        ("revise", "3.M.3"), ("add", "3.P.1"), ("drop", "3.M.5"),
    }  # fmt: skip
    (task,) = fourth.structured["for_teacher"]
    assert (task["action"], task["code"]) == ("add", "4.F.9")
    assert task["why"] == "comes from 3.F.3 (grade 3)"
    assert "drop 3.F.3" in third.text
    assert "4.F.1" not in str(third.structured["changes"])


def test_reworded_standards_have_a_difference(ask: Any, two_editions: LocalCatalog) -> None:
    answer = ask(two_editions, "compare_standards", **EDITIONS)
    (reworded,) = [each for each in answer.structured["changes"] if each["kind"] == "reworded"]
    assert reworded["diff"] == (
        "Place unit fractions {+and mixed numbers+} on a number line from zero to one"
    )
    assert "Place unit fractions **and mixed numbers** on a" in answer.text


def test_sets_are_compared_by_their_ids(ask: Any, two_editions: LocalCatalog) -> None:
    answer = ask(
        two_editions,
        "compare_standards",
        left="Aland-2010-Mathematics-4",
        right="Aland-2020-Mathematics-4",
    )
    assert changes(answer.structured) == {"new": [([], ["4.F.9"])]}


def test_equal_reports_have_equal_digests(ask: Any, two_editions: LocalCatalog) -> None:
    def digests(**arguments: str) -> dict[str, str]:
        answer = ask(two_editions, "compare_standards", **EDITIONS, **arguments)
        return answer.structured["digests"]

    assert digests() == digests()
    assert digests()["model"] == MINILM_NAME
    assert digests(grade="3")["settings"] != digests()["settings"]
    assert digests(grade="3")["catalog"] == digests()["catalog"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"left": "Aland", "right": "Aland"}, "invalid_input", "Numbers of Aland 2010"),
        ({"left": "Aland 2010", "right": "Aland 1999"}, "not_found", "Numbers of Aland 2020"),
        ({"left": "Aland 2010", "right": "Borduria"}, "invalid_input", "of one subject"),
        ({"left": "Aland 2010", "right": "Ohio"}, "not_found", '--jurisdiction "Ohio"'),
        ({"left": "Aland 2010", "right": "no such set"}, "not_found", "data sets"),
        ({"left": " ", "right": "Aland"}, "invalid_input", "left is empty"),
        ({"left": "x" * 600, "right": "Aland"}, "invalid_input", "left is too long"),
        ({**EDITIONS, "grade": "3-5"}, "invalid_input", "Pass one grade"),
        ({**EDITIONS, "grade": "x"}, "invalid_input", "not a grade"),
        (
            {**EDITIONS, "subject": "music"},
            "invalid_input", "Subjects here: Mathematics, Science",
        ),
        ({"left": "<b>|*\ud800`; DROP", "right": "Aland"}, "not_found", "browse_standards"),
    ],
)  # fmt: skip
def test_bad_input_has_the_next_step(
    ask: Any, two_editions: LocalCatalog, arguments: dict[str, str], error: str, words: str
) -> None:
    answer = ask(two_editions, "compare_standards", **arguments)
    assert answer.structured["error_type"] == error
    assert words in answer.structured["message"]


def test_a_catalog_with_the_starter_set_only_has_no_second_edition(
    ask: Any, starter: LocalCatalog
) -> None:
    same = ask(starter, "compare_standards", left="Common Core", right="CCSS").structured
    other = ask(starter, "compare_standards", left="Common Core", right="NGSS").structured
    assert "left and right are the same standards" in same["message"]
    assert "Compare two sets of one subject" in other["message"]


def test_stated_relations_come_first(ask: Any, make_standards: Any, tmp_path: Path) -> None:
    old = make_standards(
        "1.A,,1,Count the days of a week\n1.B,,1,Name the months\n", "Aland", "D", "1"
    )
    new = make_standards(
        "1.C,,1,Count the days of a week\n1.D,,1,Weigh apples\n1.E,,1,Weigh pears\n",
        "Aland", "D", "2",
    )  # fmt: skip
    stated = old[1].model_copy(update={"replaced_by": [new[1].id, new[2].id]})
    exact = old[0].model_copy(update={"exact_match_of": [new[0].id]})
    catalog = LocalCatalog(tmp_path / "catalog")
    anyio.run(catalog.upsert, [exact, stated, *new])
    answer = ask(catalog, "compare_standards", left="Aland 1", right="Aland 2", detail="full")
    catalog.store.close()
    assert changes(answer.structured) == {
        "split": [(["1.B"], ["1.D", "1.E"])], "kept": [(["1.A"], ["1.C"])]
    }  # fmt: skip
    assert answer.structured["changes"][0]["basis"] == "stated: replacedBy (D)"
    assert answer.structured["changes"][1]["basis"] == "stated: exactMatchOf (D)"


def test_hostile_text_stays_text() -> None:
    pieces = word_diff("a | <b>x</b>", "a | *y*")
    assert marked(pieces) == "a | [-<b>x</b>-] {+*y*+}"
    assert marked_up(pieces) == r"a \| ~~\<b\>x\</b\>~~ **\*y\***"
