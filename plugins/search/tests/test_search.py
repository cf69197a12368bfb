"""find_relevant_standards, called as a client calls it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from standards_mcp import Filter, Plugin, ToolResult, hookimpl
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.host import Host
from standards_mcp.loading.records import PluginInfo
from standards_mcp.testing import check_plugin
from standards_mcp_catalog import Catalog, CatalogError, SearchHit, SearchResult, StandardRecord
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_search import SearchPlugin
from standards_mcp_search.envelope import SearchEnvelope, results_envelope

Search = Callable[..., ToolResult]


class States(Plugin):
    """Adds a filter by state."""

    @hookimpl
    def register_filters(self) -> Iterable[Filter]:
        return [
            Filter(
                name="state",
                annotation=str,
                description="A state.",
                to_expression=lambda state: {"jurisdiction_title": state},
            )
        ]


@pytest.fixture
def search(ask: Callable[..., ToolResult]) -> Search:
    return partial(ask, SearchPlugin, "find_relevant_standards")


def codes(result: ToolResult) -> list[str | None]:
    assert result.structured is not None
    return [standard.get("statement_notation") for standard in result.structured["results"]]


@pytest.mark.slow
def test_the_plugin_keeps_the_rules(ten_records: Catalog):
    calls = [
        ("find_relevant_standards", {"activity": "cutting a pizza into equal slices"}),
        ("find_relevant_standards", {"activity": "rolling balls", "grade": "4", "subject": "math"}),
    ]
    check_plugin(SearchPlugin, name="search", services={Catalog: ten_records}, calls=calls)


def test_the_best_match_comes_first_and_scores_fall(search: Search):
    result = search(activity="slicing a pizza into equal parts", max_results=3)
    assert codes(result)[0] == "3.NF.A.1"
    weak = sum("weak" in standard for standard in result.structured["results"])
    assert result.structured["message"].startswith(f"Found {3 - weak} matching standard")
    assert len(result.structured["results"]) == 3
    scores = [standard["score"] for standard in result.structured["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_a_result_has_the_standards_own_text_once(search: Search):
    text = "equal slices of a pizza as fractions"
    short = search(activity=text, max_results=1)
    assert short.structured["message"] == "Found 1 matching standard"
    (full,) = search(activity=text, max_results=1, detail="full").structured["results"]
    (standard,) = short.structured["results"]
    assert standard.pop("content") == full["description"]
    assert standard == {
        key: value for key, value in full.items() if key not in ("content", "description")
    }


def without_a_code(number: int = 1) -> StandardRecord:
    return StandardRecord(
        _id=str(number),
        content="Other words",
        description="Its text",
        subject="Art",
        education_levels=["03"],
        standard_set_id="art",
        standard_set_title="Art",
        jurisdiction_id="aland",
        jurisdiction_title="Aland",
        depth=0,
        is_leaf=True,
        is_root=True,
    )


async def serving(
    folder: Path, records: list[StandardRecord], model: str = "none"
) -> tuple[LocalCatalog, Host]:
    """Return a catalog of these records, by default searched by words, and a host with it."""
    catalog = LocalCatalog(folder / "catalog", model)
    await catalog.upsert(records)
    installed = [PluginInfo(name="search", load=lambda: SearchPlugin)]
    loaded = LoadedSettings(Settings(state_dir=folder / "state", strict=True), None)
    host = Host(loaded, installed=installed, services={Catalog: catalog})
    host.load()
    return catalog, host


def test_what_a_standard_has_not_is_left_out():
    hit = SearchHit(record=without_a_code(), score=1.0, also_in=(without_a_code(2),))
    (standard,) = results_envelope(SearchResult(hits=(hit,)), full=True)["results"]
    assert standard["also_in"] == [
        {"_id": "2", "standard_set_title": "Art", "education_levels": ["03"]}
    ]
    assert "statement_notation" not in standard
    assert "heading" not in standard
    assert None not in standard.values()


@pytest.mark.parametrize("full", [True, False])
def test_a_result_without_a_code_has_the_nearest_heading_with_one(full: bool):
    above = "Depth 0 (V): Visual arts\nDepth 1 (V.2): Clay\nDepth 2: At the wheel\n"
    content = f"{above}Depth 3: Shape a bowl."
    record = without_a_code().model_copy(
        update={"content": content, "description": "Shape a bowl."}
    )
    (standard,) = results_envelope(
        SearchResult(hits=(SearchHit(record=record, score=1),)), full=full
    )["results"]
    assert standard["heading"] == {"statement_notation": "V.2", "description": "Clay"}
    bare = record.model_copy(update={"content": content.replace(" (V)", "").replace(" (V.2)", "")})
    (standard,) = results_envelope(
        SearchResult(hits=(SearchHit(record=bare, score=1),)), full=full
    )["results"]
    assert standard["heading"] == {"description": "At the wheel"}


@pytest.mark.parametrize(
    ("scores", "weak", "message"),
    [
        ((0.6, 0.5), [False, False], "Found 2 matching standards"),
        ((0.6, 0.2), [False, True], "Found 1 matching standard and 1 weak one"),
        ((0.29,), [True], "Found 1 standard, but only weak matches: the subject of the text is"),
    ],
)
def test_what_hardly_fits_is_marked_and_told(
    scores: tuple[float, ...], weak: list[bool], message: str
):
    hits = tuple(
        SearchHit(record=without_a_code(number), score=score) for number, score in enumerate(scores)
    )
    answer = results_envelope(SearchResult(hits=hits, weak_below=0.3), full=False)
    assert [each.get("weak", False) for each in answer["results"]] == weak
    assert answer["message"].startswith(message)
    unknown = results_envelope(SearchResult(hits=hits), full=False)
    assert not any("weak" in each for each in unknown["results"])
    assert "weak matches are not marked here, so check that each fits" in unknown["message"]


def test_what_no_standard_is_about_is_not_called_a_match(search: Search):
    message = search(activity="numbers of sides of a polygon").structured["message"]
    assert message.startswith("Found")
    assert "only weak matches" in message


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        (
            "oil paints mixed with turpentine",
            "The text seems to be about visual arts. No standards",
        ),
        (
            "choir sings about water",
            "The text seems to be about music. No standards of",
        ),
        ("toddlers at circle time", "The text seems to be about preschool. No standards for Pre-K"),
        (
            "what should I ask for next week?",
            "The text names no topic of a school subject; say what",
        ),
    ],
)
def test_a_subject_that_is_not_loaded_is_recognised_without_its_name(
    search: Search, text: str, missing: str
):
    answer = search(activity=text).structured
    assert answer["message"].startswith(missing)
    assert all(standard["weak"] for standard in answer["results"])
    with_subject = search(activity=text, subject="any").structured
    assert not with_subject["message"].startswith(missing)


def test_a_text_that_the_content_has_not_stays_beside_it():
    result = SearchResult(hits=(SearchHit(record=without_a_code(), score=1.0),))
    (standard,) = results_envelope(result, full=False)["results"]
    assert (standard["content"], standard.get("description")) == ("Other words", "Its text")


def test_a_result_in_full_has_the_fields_of_the_envelope(search: Search):
    (standard,) = search(
        activity="equal slices of a pizza as fractions", max_results=1, detail="full"
    ).structured["results"]
    assert standard == {
        "_id": "C" * 32,
        "content": "Depth 0: Fractions\nDepth 1: Fractions are numbers\n"
        "Depth 2: Cut a pizza into equal slices",
        "subject": "Mathematics",
        "education_levels": ["03"],
        "statement_notation": "3.NF.A.1",
        "standard_set_title": "Mathematics 03",
        "score": standard["score"],
        "why": "equal, slices, pizza, fractions",
        "jurisdiction_title": "Aland",
        "description": "Cut a pizza into equal slices",
        "text_status": "official",
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("slicing a pizza into equal parts", "slicing, pizza, equal"),
        ("equal SLICES (of pizza), in 3rd grade", "equal, SLICES, pizza"),
        ("equal slises of a piza", "equal, slices, pizza"),
        ("la pizza en partes iguales", "pizza, equal"),
        ("does 3.NF.A.1 fit 4th graders?", "3.NF.A.1"),
        ("dinner cut fairly", "cut"),
        ("sharing dinner fairly among friends", None),
    ],
)
def test_a_result_says_what_made_it_fit(search: Search, text: str, why: str | None):
    results = search(activity=text, grade="3").structured["results"]
    assert next(each for each in results if each["_id"] == "C" * 32).get("why") == why


def test_what_all_results_share_is_beside_them():
    link = "https://example.org/art/"
    shared = {"text_status": "paraphrase", "source_url": link}
    records = [without_a_code(number).model_copy(update=shared) for number in (1, 2)]

    def answer(*records: StandardRecord) -> SearchEnvelope:
        hits = tuple(SearchHit(record=record, score=1.0) for record in records)
        return results_envelope(SearchResult(hits=hits), full=False)

    def places(answer: SearchEnvelope, name: str) -> list[object]:
        return [answer.get(name), *(each.get(name) for each in answer["results"])]

    both = answer(*records)
    assert places(both, "jurisdiction_title") == ["Aland", None, None]
    assert places(both, "text_status") == ["paraphrase", None, None]
    assert places(both, "source_url") == [link, None, None]
    other = {"jurisdiction_title": "Borduria", "text_status": None, "source_url": f"{link}2"}
    mixed = answer(records[0], records[1].model_copy(update=other))
    assert places(mixed, "jurisdiction_title") == [None, "Aland", "Borduria"]
    assert places(mixed, "text_status") == [None, "paraphrase", None]
    assert places(mixed, "source_url") == [None, link, f"{link}2"]
    assert places(answer(records[0]), "source_url") == [None, link]


def test_the_text_of_an_answer_is_its_structured_content(search: Search):
    result = search(activity="slicing a pizza into equal parts")
    assert json.loads(result.text) == result.structured


def test_a_result_links_to_its_official_text():
    link = "https://example.org/art/1/"
    record = without_a_code().model_copy(update={"source_url": link})
    (standard,) = results_envelope(
        SearchResult(hits=(SearchHit(record=record, score=1.0),)), full=False
    )["results"]
    assert standard.get("source_url") == link


def test_equal_texts_are_one_result_that_says_where_else_it_stands(search: Search):
    results = search(activity="ask about a story", max_results=1).structured["results"]
    assert results[0]["also_in"] == [
        {
            "_id": ("1" if results[0]["_id"] == "0" * 32 else "0") * 32,
            "statement_notation": "RL.3.9" if results[0]["_id"] == "0" * 32 else "RL.3.1",
            "standard_set_title": "English Language Arts 03",
            "education_levels": ["03"],
        }
    ]


@pytest.mark.parametrize(
    "grade",
    [
        *("4", "04", "4th grade", "grade 4", "fourth grade"),
        *("4-5", "4 to 5", "4,5", 4, [4, 5], ["4", "5th grade"]),
    ],
)
def test_grades_are_understood_as_people_write_them(search: Search, grade: object):
    found = codes(search(activity="fractions", grade=grade))
    assert "4.NF.A.1" in found
    assert "3.NF.A.1" not in found


@pytest.mark.parametrize("grade", [True, 4.5, {"grade": 4}, [None]])
def test_what_is_no_grade_is_refused(search: Search, grade: object):
    assert search(activity="fractions", grade=grade).structured["error_type"] == "invalid_input"


@pytest.mark.parametrize("subject", ["math", "Maths", "MATHEMATICS"])
def test_subjects_are_matched_to_those_that_the_catalog_holds(search: Search, subject: str):
    found = search(activity="a story", subject=subject, max_results=50)
    assert {standard["subject"] for standard in found.structured["results"]} == {"Mathematics"}


def test_grade_and_subject_narrow_together(search: Search):
    found = search(activity="ask about it", grade="3", subject="ELA", max_results=50)
    assert {standard["_id"] for standard in found.structured["results"]} <= {"0" * 32, "1" * 32}
    assert len(found.structured["results"]) >= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"activity": ""}, "activity is empty"),
        ({"activity": "\n\t "}, "activity is empty"),
        ({"activity": "x" * 8001}, "activity has 8,001 characters, at most 8,000 are allowed"),
        ({"activity": "x", "grade": "13"}, "13"),
        ({"activity": "x", "subject": "alchemy"}, "Subjects here: English Language Arts, Math"),
        ({"activity": "x", "max_results": 0}, "max_results: should be greater than or equal to 1"),
        ({"activity": "x", "max_results": 51}, "max_results: should be less than or equal to 50"),
        ({}, "activity: this argument is required"),
    ],
)
def test_wrong_arguments_are_named(search: Search, arguments: dict[str, Any], message: str):
    result = search(**arguments)
    assert result.is_error
    assert result.structured["error_type"] == "invalid_input"
    assert message in result.structured["message"]


def test_a_subject_of_which_nothing_is_loaded_comes_with_the_command_that_loads_it(search: Search):
    message = search(activity="paint a mural", subject="art").structured["message"]
    assert message.startswith("No standards of art are loaded here; the operator of the server can")
    assert "data import --from-api csp --jurisdiction STATE --subject 'art'" in message
    assert message.endswith("Subjects here: English Language Arts, Mathematics, Science.")
    named = search(activity="mix water and paint, an art lesson")
    assert "No standards of art are loaded here; the" in named.structured["message"]
    assert named.structured["success"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("les enfants coupent une pizza en parts pour la classe", "French"),
        ("couper une pizza en parts pour comparer des fractions", "French"),
        ("把披萨切成相等的几份", "Chinese"),
    ],
)
def test_a_text_in_another_language_is_told_what_to_do(search: Search, text: str, language: str):
    message = search(activity=text).structured["message"]
    assert f"The text seems to be {language}, and the standards here are in English" in message


def test_misspelt_words_are_corrected_and_the_answer_says_how_they_were_read(search: Search):
    result = search(activity="franctions on a numbr lyne")
    assert codes(result)[0] == "3.NF.A.2"
    assert "Read as: fractions on a number line." in result.text
    assert "Read as" not in search(activity="fractions on a number line").text


def test_a_misspelt_grade_is_read_too(tmp_path: Path):
    fable, other = (
        without_a_code(number).model_copy(
            update={"description": text, "content": text, "education_levels": (level,)}
        )
        for number, text, level in (
            (1, "Readers of the third grade retell a fable", "03"),
            (2, "Retell a fable and a story", "04"),
        )
    )

    async def ask() -> ToolResult:
        catalog, host = await serving(tmp_path, [fable, other], "minilm")
        arguments = {"activity": "retell a fable, thrid grade"}
        result = await host.call_tool("find_relevant_standards", arguments)
        await catalog.aclose()
        return result

    result = anyio.run(ask)
    assert [standard["_id"] for standard in result.structured["results"]] == [fable.id]
    assert "Read as: retell a fable, third grade. The text names grade 3, so" in result.text


def test_a_huge_subject_is_not_given_back_whole(search: Search):
    message = search(activity="x", subject="alchemy " * 1000).structured["message"]
    assert message.startswith("Unknown subject 'alchemy alchemy")
    assert len(message) < 300


def test_blank_grade_and_subject_do_not_narrow(search: Search):
    assert codes(search(activity="pizza", grade=" ", subject="")) == codes(search(activity="pizza"))


def test_a_grade_in_the_text_counts_like_the_argument_and_the_answer_says_so(search: Search):
    topic = "draw equal slices of a pizza as fractions"
    read, argument = search(activity=f"{topic} with 4th graders"), search(activity=topic, grade="4")
    assert codes(read) == codes(argument) == ["4.NF.A.1"]
    assert read.structured["results"] == argument.structured["results"], "equal scores, too"
    assert "The text names grade 4, so only its standards were searched; pass grade = " in read.text
    not_read = search(activity=f"{topic} with 4th graders", grade="any")
    assert codes(not_read)[0] == "3.NF.A.1"
    assert "The text names" not in not_read.text


def test_a_subject_in_the_text_counts_like_a_grade(search: Search):
    result = search(activity="ask about equal pieces, a science lesson for grade 5")
    assert {standard["subject"] for standard in result.structured["results"]} == {"Science"}
    assert "The text names grade 5 and science" in result.text
    assert "pass grade = 'any' and subject = 'any' to search all" in result.text


def test_better_matches_of_other_grades_are_named(search: Search):
    result = search(activity="ask about equal pieces, a science lesson for grade 5")
    assert all("weak" in standard for standard in result.structured["results"])
    assert "Standards outside of grade 5 and science fit better: 3.NF.1 (grade 3)" in result.text


def test_results_of_several_grades_ask_for_one(search: Search):
    answer = "They are of grades 3-4; give a grade to narrow the search."
    assert answer in search(activity="draw equal slices of a pizza as fractions").text
    assert "narrow the search" not in search(activity="equal slices of a pizza", grade="3").text


@pytest.mark.parametrize("arguments", [{"grade": "3"}, {"subject": "math", "grade": "ANY"}])
def test_arguments_count_more_than_the_text(search: Search, arguments: dict[str, Any]):
    result = search(activity="equal slices of a pizza, a math lesson for 4th graders", **arguments)
    assert codes(result)[0] == "3.NF.A.1"
    assert "grade 4" not in result.text


def test_a_code_in_the_text_counts_more_than_its_grade(search: Search):
    result = search(activity="what does 3.NF.A.2 ask of 4th graders?")
    assert codes(result)[0] == "3.NF.A.2"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("equal slices of a pizza in grade 12", "No standards for grade 12 are loaded here"),
        ("equal slices of a pizza with preschoolers", "No standards for Pre-K are loaded here"),
        (
            "TEKS for equal slices of a pizza",
            "The Texas Essential Knowledge and Skills (TEKS) are not loaded here; `standards-mcp",
        ),
        ("Ohio math standards: equal slices of a pizza", "The standards of Ohio are not loaded"),
        ("a music lesson with equal slices of a pizza", "No standards of music are loaded here"),
    ],
)
def test_the_answer_begins_with_what_is_not_loaded_and_all_results_are_weak(
    search: Search, text: str, missing: str
):
    answer = search(activity=text).structured
    assert answer["message"].startswith(missing)
    assert "results are of others: do not cite them for this text." in answer["message"]
    assert answer["results"][0]["statement_notation"] == "3.NF.A.1"
    assert all(standard["weak"] for standard in answer["results"])


def test_a_framework_in_the_text_that_is_loaded_limits_the_search(tmp_path: Path):
    ours, other = (
        without_a_code(number).model_copy(
            update=dict.fromkeys(
                ("standard_set_id", "jurisdiction_id", "jurisdiction_title"), state
            )
        )
        for number, state in ((1, "Texas"), (2, "Ohio"))
    )

    async def ask() -> ToolResult:
        catalog, host = await serving(tmp_path, [ours, other])
        arguments = {"activity": f"TEKS for {ours.description}"}
        result = await host.call_tool("find_relevant_standards", arguments)
        await catalog.aclose()
        return result

    result = anyio.run(ask)
    assert [standard["_id"] for standard in result.structured["results"]] == [ours.id]
    assert "Skills (TEKS), so only its standards were searched." in result.text


def test_a_filter_on_grades_counts_more_than_the_text(catalog: LocalCatalog, tmp_path: Path):
    class Levels(Plugin):
        @hookimpl
        def register_filters(self) -> Iterable[Filter]:
            return [
                Filter(
                    name="level",
                    annotation=str,
                    description="A level.",
                    to_expression=lambda level: {"education_levels": level},
                )
            ]

    installed = [
        PluginInfo(name="search", load=lambda: SearchPlugin),
        PluginInfo(name="levels", load=lambda: Levels),
    ]
    host = Host(
        LoadedSettings(Settings(state_dir=tmp_path), None),
        installed=installed,
        services={Catalog: catalog},
    )
    host.load()
    arguments = {"activity": "equal slices of a pizza for 4th graders", "level": "03"}
    result = anyio.run(host.call_tool, "find_relevant_standards", arguments)
    assert codes(result)[0] == "3.NF.A.1"
    assert "The text names" not in result.text


def test_no_match_is_not_an_error_and_says_how_to_widen_the_search(search: Search):
    result = search(activity="pizza", grade="12", subject="math")
    assert not result.is_error
    assert result.structured["error_type"] == "no_results"
    message = result.structured["message"]
    assert "Search again without grade or subject." in message
    assert "Without the grade there are matches in: 03, 04." in message


def test_no_match_names_the_subjects_that_have_one_at_that_grade(search: Search):
    message = search(activity="water", grade="5", subject="ELA").structured["message"]
    assert "Without the subject there are matches in: Science." in message


def test_the_advice_takes_one_search_and_keeps_to_the_filters_of_plugins(
    catalog: LocalCatalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    asked = list[Any]()
    real = LocalCatalog.search

    async def search(self: LocalCatalog, text: str, top_k: int = 5, filter: Any = None):  # noqa: A002
        asked.append(filter)
        return await real(self, text, top_k, filter)

    monkeypatch.setattr(LocalCatalog, "search", search)
    settings = LoadedSettings(Settings(state_dir=tmp_path, strict=True), None)
    installed = [
        PluginInfo(name="search", load=lambda: SearchPlugin),
        PluginInfo(name="states", load=lambda: States),
    ]
    host = Host(settings, installed=installed, services={Catalog: catalog})
    host.load()
    arguments = {"activity": "pizza", "grade": "3", "subject": "math", "state": "Borduria"}

    def message(**more: str) -> str:
        call = partial(host.call_tool, "find_relevant_standards", arguments | more)
        return anyio.run(call).structured["message"]

    assert "Found" in message(activity="share a cake")
    asked.clear()
    assert message(grade="5", activity="share a cake") == (
        "No standards matched. Search again without grade or subject. "
        "Without the grade there are matches in: 03."
    )
    assert len(asked) == 2


def test_no_match_without_a_grade_or_a_subject_asks_for_other_words(search: Search):
    message = search(activity="zzzz qqqq").structured["message"]
    assert message == (
        "No standards matched. Describe the activity in other or more general words."
    )


def test_the_admin_sets_the_default_number_of_results(search: Search):
    assert len(codes(search({"max_results": 2}, activity="fractions"))) == 2
    assert len(codes(search({"max_results": 2}, activity="fractions", max_results=4))) == 4


def test_a_catalog_that_fails_is_an_api_error(search: Search, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise CatalogError("the index is gone; run `standards-mcp data build`")

    monkeypatch.setattr(LocalCatalog, "search", fail)
    result = search(activity="pizza")
    assert result.is_error
    assert result.structured["error_type"] == "api_error"
    assert "data build" in result.structured["message"]


def test_a_search_without_the_model_says_so(tmp_path: Path, catalog: LocalCatalog):
    found = anyio.run(catalog.fetch, ["C" * 32])
    lexical = LocalCatalog(tmp_path / "lexical", model="none")
    anyio.run(lexical.upsert, found)
    settings = LoadedSettings(Settings(state_dir=tmp_path), None)
    record = PluginInfo(name="search", load=lambda: SearchPlugin)
    host = Host(settings, installed=[record], services={Catalog: lexical})
    host.load()
    call = partial(host.call_tool, "find_relevant_standards", {"activity": "pizza"})
    result = anyio.run(call)
    assert codes(result) == ["3.NF.A.1"]
    assert result.structured["message"].startswith("Found 1 standard, best first;")
    assert "that each fits. Searched by words" in result.structured["message"]


def test_retired_standards_are_found_where_they_rank_and_say_so(tmp_path: Path) -> None:
    old = without_a_code(1).model_copy(
        update={"statement_notation": "Q.1", "publication_status": "Superseded"}
    )
    new = StandardRecord.from_dict(without_a_code(2).to_dict() | {"replaces": [old.id]})

    async def ask() -> Any:
        catalog, host = await serving(tmp_path, [old, new])
        result = await host.call_tool("find_relevant_standards", {"activity": old.description})
        ranked = await catalog.search(old.description, 5)
        await catalog.aclose()
        return result.structured, [hit.record.id for hit in ranked.hits]

    answer, ranked = anyio.run(ask)
    assert [each["_id"] for each in answer["results"]] == ranked
    retired = {each["_id"]: each["retired"] for each in answer["results"] if "retired" in each}
    assert retired[old.id]["replaced_by"][0]["_id"] == new.id
    assert list(retired) == [old.id]
    assert f"Q.1 is retired (Superseded); replaced by {new.id}." in answer["message"]
