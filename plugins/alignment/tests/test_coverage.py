"""A unit, checked against the standards of a grade as a client asks for it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from standards_mcp_alignment.coverage.matching import MET_SCORE
from standards_mcp_catalog.local.catalog import LocalCatalog

PERIMETER = "Find the perimeter of polygons by adding the lengths of their sides"
CLOCKS = "Read clocks and write the time to the nearest minute"
UNIT = {"grade": "3", "subject": "math"}


def by_code(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the standards by their codes, without the prefix of the Common Core."""
    return {each["code"].removeprefix("CCSS.Math.Content."): each for each in answer["standards"]}


def test_descriptions_and_codes_cover_standards(ask: Any, starter: LocalCatalog) -> None:
    activities = [PERIMETER, "3.MD.A.1, 3.MD.A.2", f"{CLOCKS} (3.MD.A.1)"]
    answer = ask(starter, "check_coverage", activities=activities, **UNIT)
    standards = by_code(answer.structured)
    assert standards["3.MD.D.8"]["by"] == [1]
    assert standards["3.MD.D.8"]["basis"] == "meaning"
    assert standards["3.MD.D.8"]["score"] >= MET_SCORE
    assert standards["3.MD.A.1"]["by"] == [2, 3]
    assert (standards["3.MD.A.2"]["basis"], standards["3.MD.A.2"]["score"]) == ("code", 1.0)
    assert not standards["3.G.A.1"]["covered"]
    covered = {code for code, each in standards.items() if each["covered"]}
    assert covered == {"3.MD.D.8", "3.MD.A.1", "3.MD.A.2"}


def test_the_summary_counts_domains_and_clusters(ask: Any, starter: LocalCatalog) -> None:
    answer = ask(starter, "check_coverage", activities=["3.NF.A.1"], **UNIT).structured
    domains = {each["code"].rpartition(".")[2]: each for each in answer["summary"]}
    assert list(domains) == ["G", "MD", "NBT", "NF", "OA"]
    assert (domains["NF"]["standards"], domains["NF"]["covered"]) == (7, 1)
    (cluster,) = domains["NF"]["clusters"]
    assert (cluster["code"], cluster["covered"]) == ("CCSS.Math.Content.3.NF.A", 1)
    assert len(domains["NF"]["missing"]) == 6
    assert sum(each["standards"] for each in domains.values()) == len(answer["standards"])
    assert "8 standards for more than 7 grades do not count." in answer["notes"]


def test_strands_without_headings_are_read_from_codes(ask: Any, starter: LocalCatalog) -> None:
    answer = ask(
        starter, "check_coverage", activities=["RL.4.1"], grade="4", subject="ELA"
    ).structured
    assert [each["code"] for each in answer["summary"]] == ["L", "RF", "RI", "RL", "SL", "W"]


def test_a_standard_with_parts_covers_its_parts_and_a_heading_nothing(
    ask: Any, starter: LocalCatalog
) -> None:
    activities = ["3.NF.A.2", "3.G", "3.OA.A"]
    answer = ask(starter, "check_coverage", activities=activities, **UNIT).structured
    covered = {code for code, each in by_code(answer).items() if each["covered"]}
    assert covered == {"3.NF.A.2a", "3.NF.A.2b"}
    assert [each.get("elsewhere") for each in answer["activities"]] == [None, ["3.G"], ["3.OA.A"]]


def test_codes_of_other_grades_and_unknown_codes_are_named(ask: Any, starter: LocalCatalog) -> None:
    answer = ask(
        starter, "check_coverage", activities=["4.NF.A.1", "3.ZZ.1", "write a poem"], **UNIT
    )
    fourth, unknown, poem = answer.structured["activities"]
    assert (fourth["elsewhere"], unknown["unknown"]) == (["4.NF.A.1"], ["3.ZZ.1"])
    assert "3 write a poem: meets no standard of this grade clearly" in answer.text
    assert poem["meets"] == []


def test_the_plan_is_the_smallest_selection(ask: Any, starter: LocalCatalog) -> None:
    activities = [
        "3.MD.A.2, 3.MD.B.3, 3.MD.B.4",
        "3.MD.A.1, 3.MD.A.2, 3.G.A.1",
        "3.MD.B.3, 3.MD.B.4",
        "write a poem",
    ]
    answer = ask(starter, "check_coverage", activities=activities, plan=True, **UNIT)
    plan = answer.structured["plan"]
    assert sorted(step["activity"] for step in plan["steps"]) == [1, 2]
    assert (plan["covers"], plan["exact"], plan["not_needed"]) == (5, True, [3])
    assert sorted(code for step in plan["steps"] for code in step["adds"]) == sorted(
        each["code"] for each in answer.structured["standards"] if each["covered"]
    )
    assert "No smaller selection covers as much." in answer.text


def test_high_school_is_one_grade(ask: Any, starter: LocalCatalog) -> None:
    arguments = {"grade": "high school", "subject": "math"}
    answer = ask(starter, "check_coverage", activities=["HSF-LE.A.1a"], **arguments).structured
    assert answer["grades"] == ["09", "10", "11", "12"]
    (covered,) = [each for each in answer["standards"] if each["covered"]]
    assert covered["code"] == "CCSS.Math.Content.HSF-LE.A.1a"


def test_equal_reports_have_equal_digests(ask: Any, starter: LocalCatalog) -> None:
    def digests(*activities: str, **more: Any) -> dict[str, str]:
        arguments = {"activities": list(activities), **UNIT, **more}
        return ask(starter, "check_coverage", **arguments).structured["digests"]

    first = digests(PERIMETER)
    assert first == digests(PERIMETER)
    assert digests(CLOCKS)["input"] != first["input"]
    assert digests(PERIMETER, plan=True)["settings"] != first["settings"]
    assert digests(PERIMETER, grade="4")["catalog"] != first["catalog"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"activities": []}, "invalid_input", "activities is empty"),
        ({"activities": ["", " \n"]}, "invalid_input", "activities is empty"),
        ({"activities": ["x"] * 2_000}, "invalid_input", "standards-mcp alignment align"),
        ({"activities": ["x"] * 10_000}, "invalid_input", "send fewer in one call"),
        ({"activities": ["x" * 9_000]}, "invalid_input", "Activity 1 has 9,000 characters"),
        ({"grade": "K-2"}, "invalid_input", "Pass one grade, such as '2'"),
        ({"grade": "seventeen"}, "invalid_input", "is not a grade"),
        ({"subject": "music"}, "invalid_input", "Subjects here:"),
        ({"grade": "Pre-K"}, "not_found", "is loaded there for grades K-12"),
        ({"standard_set": "no such set"}, "not_found", "data sets"),
        ({"jurisdiction": "Ohio"}, "invalid_input", "No standards of Ohio are loaded"),
    ],
)
def test_bad_input_has_the_next_step(
    ask: Any, starter: LocalCatalog, arguments: dict[str, Any], error: str, words: str
) -> None:
    answer = ask(starter, "check_coverage", **({"activities": [CLOCKS], **UNIT} | arguments))
    assert answer.structured["error_type"] == error
    assert words in answer.structured["message"]


def test_an_ambiguous_jurisdiction_is_asked_for(
    ask: Any, make_standards: Any, tmp_path: Any
) -> None:
    catalog = LocalCatalog(tmp_path / "catalog")
    rows = "1.A,,1,Count the days of a week\n"
    both = [*make_standards(rows, "Aland", "D", "1"), *make_standards(rows, "Borduria", "D", "1")]
    anyio.run(catalog.upsert, both)
    unit = {"activities": ["count days"], "grade": "1", "subject": "math"}
    answer = ask(catalog, "check_coverage", **unit).structured
    assert "Pass jurisdiction: one of Aland, Borduria" in answer["message"]
    chosen = ask(catalog, "check_coverage", **unit, jurisdiction="Borduria").structured
    assert (chosen["jurisdiction"], len(chosen["standards"])) == ("Borduria", 1)
    catalog.store.close()


def test_editions_do_not_mix_unnoticed(ask: Any, two_editions: LocalCatalog) -> None:
    unit = {"activities": ["3.M.1"], **UNIT}
    one_set = ask(two_editions, "check_coverage", **unit, standard_set="Aland-2020-Mathematics-3")
    assert len(one_set.structured["standards"]) == 7


def test_retired_standards_do_not_count(ask: Any, make_standards: Any, tmp_path: Any) -> None:
    catalog = LocalCatalog(tmp_path / "catalog")
    old, new = make_standards("1.A,,1,Count days\n1.B,,1,Count weeks\n", "Aland", "D", "1")
    anyio.run(catalog.upsert, [old.model_copy(update={"publication_status": "Superseded"}), new])
    unit = {"activities": ["1.A", "1.B"], "grade": "1", "subject": "math"}
    answer = ask(catalog, "check_coverage", **unit).structured
    assert [each["code"] for each in answer["standards"]] == ["1.B"]
    assert "1 retired standards do not count." in answer["notes"]
    catalog.store.close()


def test_a_number_as_grade_and_a_single_text_are_accepted(ask: Any, starter: LocalCatalog) -> None:
    arguments = {"activities": "3.MD.D.8", "grade": 3, "subject": "math"}
    answer = ask(starter, "check_coverage", **arguments).structured
    assert by_code(answer)["3.MD.D.8"]["covered"]


def test_hostile_activities_stay_text(ask: Any, starter: LocalCatalog) -> None:
    hostile = "| <script>alert(1)</script> \ud800 `rm -rf` \u202e [x](http://x) 3.MD.D.8"
    answer = ask(starter, "check_coverage", activities=[hostile, "\x00", "🦆" * 50], **UNIT)
    assert "<script>" not in answer.text
    assert by_code(answer.structured)["3.MD.D.8"]["by"] == [1]


def test_a_store_without_measured_scores_says_so(
    ask: Any, make_standards: Any, tmp_path: Any
) -> None:
    catalog = LocalCatalog(tmp_path / "catalog", "none")
    anyio.run(catalog.upsert, make_standards("1.A,,1,Count days\n", "Aland", "D", "1"))
    unit = {"activities": ["count days"], "grade": "1", "subject": "math"}
    answer = ask(catalog, "check_coverage", **unit).structured
    assert not answer["met"]["measured"]
    assert "never measured" in answer["met"]["meaning"]
    assert any("by words only" in note for note in answer["notes"])
    catalog.store.close()
