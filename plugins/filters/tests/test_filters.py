"""The filters, given to find_relevant_standards as a client gives them."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from emulator.server import PineconeServer
from hypothesis import given
from hypothesis import strategies as st
from support.catalogs import STORES, FilledCatalogs

from standards_mcp import InvalidInputError
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.host import Host
from standards_mcp.loading.discovery import ENTRY_POINT_GROUP
from standards_mcp.loading.records import PluginInfo
from standards_mcp.testing import check_plugin
from standards_mcp_catalog import Catalog, CatalogError, StandardRecord
from standards_mcp_catalog.local.catalog import LocalCatalog
from standards_mcp_catalog.vocabulary.grades import GRADES, SCHOOL_GRADES
from standards_mcp_filters import FiltersPlugin
from standards_mcp_filters.grades import grade_filter
from standards_mcp_search import SearchPlugin

pytestmark = pytest.mark.anyio

GUID = "6B9BF846F1EF4A2C8C7A1B2C3D4E5F60"
ALAND = {"jurisdiction_title": "Aland", "jurisdiction_id": GUID}
BORDURIA = {"jurisdiction_title": "Borduria Board of Schools", "jurisdiction_id": "borduria"}
NAMES = (
    "grade_range",
    "jurisdiction",
    "standard_set_id",
    "notation_prefix",
    "core_idea",
    "statement_label",
    "is_leaf",
    "depth",
    "publication_status",
)


def standard(id_: str, code: str, grade: str, place: dict[str, str], **fields: Any):
    data = {
        "_id": id_,
        "content": f"Depth 0: Learners meet {id_} {code}.",
        "subject": "Mathematics",
        "education_levels": [grade],
        "standard_set_id": f"{place['jurisdiction_title']}-{grade}",
        "standard_set_title": f"Mathematics {place['jurisdiction_title']} {grade}",
        "statement_notation": code,
        "statement_label": "Standard",
        "publication_status": "Published",
    }
    return StandardRecord.from_dict(data | place | fields)


RECORDS = [
    standard(
        "A", "CCSS.Math.Content.3.NF.A", "03", ALAND, is_leaf=False, statement_label="Cluster"
    ),
    standard("B", "CCSS.Math.Content.3.NF.A.1", "03", ALAND, depth=1),
    standard("C", "CCSS.Math.Content.4.NF.A.1", "04", ALAND, depth=1, also_in_set_ids=["Other"]),
    standard("D", "K.CC.1", "K", BORDURIA, also_in_set_titles=["Counting"]),
    standard("E", "3-LS1-1", "03", BORDURIA, publication_status="Draft"),
    standard("F", "F.7", "12", BORDURIA, depth=2),
]

SELECTED: list[tuple[dict[str, Any], str]] = [
    ({}, "ABCDEF"),
    ({"is_leaf": False}, "A"),
    ({"is_leaf": "true", "depth": 1}, "BC"),
    ({"depth": 0}, "ADE"),
    ({"grade_range": "3-4"}, "ABCE"),
    ({"grade_range": "K-2"}, "D"),
    ({"grade_range": 3}, "ABE"),
    ({"grade_range": "4 within 1"}, "ABCE"),
    ({"grade_range": "3 ± 3 grades"}, "ABCDE"),
    ({"grade_range": "K-2, within=1"}, "ABDE"),
    ({"grade_range": "4 within: 1 grade"}, "ABCE"),
    ({"grade_range": "4-3"}, "ABCE"),
    ({"grade_range": 4.0}, "C"),
    ({"grade_range": "high school"}, "F"),
    ({"grade_range": " "}, "ABCDEF"),
    ({"jurisdiction": "aland"}, "ABC"),
    ({"jurisdiction": "6b9bf846-f1ef-4a2c-8c7a-1b2c3d4e5f60"}, "ABC"),
    ({"jurisdiction": "Borduria"}, "DEF"),
    ({"jurisdiction": "BBOS"}, "DEF"),
    ({"jurisdiction": "BORDURIA"}, "DEF"),
    ({"jurisdiction": ""}, "ABCDEF"),
    ({"standard_set_id": "Aland-03"}, "AB"),
    ({"standard_set_id": "mathematics aland 03"}, "AB"),
    ({"standard_set_id": "Other"}, "C"),
    ({"standard_set_id": "counting"}, "D"),
    ({"statement_label": "cluster"}, "A"),
    ({"publication_status": "DRAFT"}, "E"),
    ({"notation_prefix": "3.nf"}, "AB"),
    ({"notation_prefix": "3.NF.A"}, "AB"),
    ({"notation_prefix": "CCSS.Math"}, "ABC"),
    ({"notation_prefix": "3NF1"}, "B"),
    ({"notation_prefix": "3"}, "ABE"),
    ({"notation_prefix": 3}, "ABE"),
    ({"notation_prefix": "k.cc.a"}, "D"),
    ({"notation_prefix": "3-LS1"}, "E"),
    ({"core_idea": "LS1"}, "E"),
    ({"core_idea": "ls1.b"}, "E"),
    ({"core_idea": "molecules"}, "E"),
    ({"jurisdiction": "Aland", "grade_range": "3", "is_leaf": True}, "B"),
    ({"grade": "3-4", "subject": "math", "notation_prefix": "3.NF", "depth": 1}, "B"),
    (
        {"standard_set_id": "Aland-03", "jurisdiction": GUID, "publication_status": "published"},
        "AB",
    ),
]

REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"jurisdiction": "Alnd"},
        "jurisdiction: No jurisdiction here is 'Alnd'. Did you mean 'Aland'?",
    ),
    ({"jurisdiction": "x" * 500}, "There are: 'Aland', 'Borduria Board of Schools'."),
    ({"jurisdiction": "Syldavia"}, "There are: 'Aland', 'Borduria Board of Schools'."),
    ({"jurisdiction": "Board"}, "There are: 'Aland', 'Borduria Board of Schools'."),
    ({"statement_label": "Clustr"}, "Did you mean 'Cluster'? There are: 'Cluster', 'Standard'."),
    ({"publication_status": "Gone"}, "There are: 'Draft', 'Published'."),
    ({"standard_set_id": "Aland-3"}, "No standard set here is 'Aland-3'. Did you mean 'Aland-03'"),
    ({"standard_set_id": "math 04"}, "is 'math 04'. Did you mean 'Mathematics Aland 04'? There"),
    ({"grade_range": ["3", "5"]}, "grade_range: should be a valid string"),
    ({"jurisdiction": True}, "jurisdiction: should be a valid string"),
    ({"core_idea": "chemistry"}, "No core idea is called 'chemistry'. There are: PS1: Matter"),
    ({"core_idea": "ESS2"}, "No standard here belongs to ESS2: Earth's Systems."),
    ({"notation_prefix": "3.NG"}, "No code here begins with '3.NG'. The nearest are 3.NF"),
    ({"notation_prefix": "3.N"}, "No code here begins with '3.N'. The nearest are "),
    ({"notation_prefix": "..."}, "No code here begins with '...'. Give '3.NF' or 'RL.3', say."),
    ({"grade_range": "13"}, "grade_range: '13' is not a grade."),
    ({"grade_range": "within 1"}, "Write '3-5', or '4 within 1' for 3 to 5."),
    ({"depth": -1}, "depth: should be greater than or equal to 0"),
    ({"is_leaf": "perhaps"}, "is_leaf: should be a valid boolean"),
]


@pytest.fixture(scope="session")
def catalogs(tmp_path_factory: pytest.TempPathFactory) -> FilledCatalogs:
    return FilledCatalogs(RECORDS, tmp_path_factory.mktemp("filters") / "catalog")


@pytest.fixture(params=STORES)
async def catalog(
    request: pytest.FixtureRequest, catalogs: FilledCatalogs, tmp_path: Path
) -> AsyncIterator[Catalog]:
    async with catalogs.opened(request.param, tmp_path / "catalog") as catalog:
        yield catalog


@pytest.mark.slow
def test_the_plugin_keeps_the_rules(ten_records: Catalog):
    filters = {"grade_range": "3-4", "notation_prefix": "3.NF", "jurisdiction": "aland"}
    arguments = {"activity": "cutting a pizza into equal slices", "is_leaf": True, **filters}
    check_plugin(
        FiltersPlugin,
        name="filters",
        beside={"search": SearchPlugin},
        services={Catalog: ten_records},
        calls=[("find_relevant_standards", arguments)],
    )


Ask = Callable[..., Any]


@pytest.fixture
def ask(catalog: Catalog, tmp_path: Path) -> Ask:
    return asking(catalog, tmp_path)


def asking(catalog: Catalog, tmp_path: Path) -> Ask:
    host = host_of(catalog, tmp_path)

    async def ask(**arguments: Any) -> Any:
        given = {"activity": "learners meet", "max_results": 50} | arguments
        return (await host.call_tool("find_relevant_standards", given)).structured

    return ask


def host_of(catalog: Catalog, tmp_path: Path, **settings: Any) -> Host:
    plugins = {"search": SearchPlugin, "filters": FiltersPlugin}
    installed = [
        PluginInfo(name=name, load=lambda found=plugin: found) for name, plugin in plugins.items()
    ]
    loaded = LoadedSettings(Settings(state_dir=tmp_path, strict=True, **settings), None)
    host = Host(loaded, installed=installed, services={Catalog: catalog})
    host.load()
    return host


def arguments_of(host: Host) -> dict[str, Any]:
    (tool,) = host.visible().visible_tools
    return tool.arguments.schema["properties"]


@pytest.mark.slow
async def test_every_filter_selects_the_same_in_every_store(ask: Ask):
    for arguments, expected in SELECTED:
        answer = await ask(**arguments)
        found = "".join(sorted(each["_id"] for each in answer["results"]))
        assert (arguments, found) == (arguments, expected), answer["message"]


@pytest.mark.parametrize("store", STORES)
async def test_a_state_is_named_by_name_code_and_publisher(store: str, tmp_path: Path):
    titles = ("CPALMS", "Washington, D.C.", "Washington", "New York", "New Jersey")
    places = [
        {"jurisdiction_title": title, "jurisdiction_id": f"j{number}"}
        for number, title in enumerate(titles)
    ]
    records = [
        standard(f"S{number}", f"X.{number}", "03", place) for number, place in enumerate(places)
    ]
    catalogs = FilledCatalogs(records, tmp_path / "filled")
    async with catalogs.opened(store, tmp_path / "catalog") as catalog:
        ask = asking(catalog, tmp_path)
        for name, expected in (
            ("Florida", "S0"), ("fl", "S0"), ("cpalms", "S0"), ("DC", "S1"), ("WA", "S2"),
            ("washington", "S2"), ("State of New York", "S3"), ("N.J.", "S4"), ("j4", "S4"),
        ):  # fmt: skip
            found = (await ask(jurisdiction=name))["results"]
            assert (name, [each["_id"] for each in found]) == (name, [expected])
        several = (await ask(jurisdiction="New"))["message"]
        assert "'New' may be 'New Jersey' or 'New York'. Name one of them in full." in several
        missing = (await ask(jurisdiction="OH"))["message"]
        assert "No jurisdiction here is 'OH'. No standards of Ohio are loaded." in missing
        assert "Did you mean 'CPALMS'?" in (await ask(jurisdiction="Folrida"))["message"]


async def test_a_value_that_is_not_there_is_refused_with_what_is(ask: Ask):
    for arguments, message in REFUSED:
        answer = await ask(**arguments)
        assert answer["error_type"] == "invalid_input", arguments
        assert message in answer["message"]
        assert len(answer["message"]) < 700


NOTES: list[tuple[dict[str, Any], str, str]] = [
    (
        {"jurisdiction": "Aland", "notation_prefix": "K.CC", "depth": None, "grade_range": ""},
        'jurisdiction = "Aland", notation_prefix = "K.CC"',
        "Try without jurisdiction, or without notation_prefix.",
    ),
    (
        {"is_leaf": False, "jurisdiction": "Aland", "depth": "1"},
        'is_leaf = false, depth = "1", jurisdiction = "Aland"',
        "Try without is_leaf, or without depth.",
    ),
    ({"depth": 9}, "depth = 9", "Try without depth."),
    (
        {"is_leaf": False, "depth": 2, "grade_range": "K"},
        'is_leaf = false, depth = 2, grade_range = "K"',
        "Leave some out.",
    ),
    ({"depth": 9, "grade": "3"}, "depth = 9", "Leave some out."),
]


async def test_a_search_that_finds_nothing_names_the_filters_and_those_in_the_way(
    catalog: Catalog, tmp_path: Path
):
    host = host_of(catalog, tmp_path)
    for arguments, in_force, advice in NOTES:
        given = {"activity": "learners meet"} | arguments
        result = await host.call_tool("find_relevant_standards", given)
        assert result.notes == (f"Filters in force: {in_force}. {advice}",)
        assert not result.is_error


@pytest.mark.parametrize("arguments", [{"is_leaf": True}, {"grade": "11"}, {"depth": -1}])
async def test_any_other_answer_gets_no_note(
    catalog: Catalog, tmp_path: Path, arguments: dict[str, Any]
):
    given = {"activity": "learners meet"} | arguments
    result = await host_of(catalog, tmp_path).call_tool("find_relevant_standards", given)
    assert result.notes == ()


async def test_the_note_is_shorter_where_the_catalog_cannot_be_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def search(self: LocalCatalog, *_: object) -> Any:
        if asked:
            raise CatalogError("the index is gone")
        asked.append(self)
        return await real(self, "learners meet", 5, {"depth": 9})

    asked, real = list[LocalCatalog](), LocalCatalog.search
    monkeypatch.setattr(LocalCatalog, "search", search)
    host = host_of(LocalCatalog(tmp_path / "catalog", "none"), tmp_path)
    result = await host.call_tool("find_relevant_standards", {"activity": "x", "depth": 9})
    assert result.notes == ("Filters in force: depth = 9. Leave some out.",)


async def test_the_note_is_shorter_where_a_filter_cannot_look_up_its_value_again(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def values(field: str) -> Any:
        asked.append(field)
        if asked.count(field) > 1:
            raise CatalogError("the index is gone")
        return await real(field)

    asked, real = list[str](), catalog.values
    monkeypatch.setattr(catalog, "values", values)
    given = {"activity": "learners meet", "jurisdiction": "Aland", "depth": 9}
    result = await host_of(catalog, tmp_path).call_tool("find_relevant_standards", given)
    in_force = 'depth = 9, jurisdiction = "Aland"'
    assert result.notes == (f"Filters in force: {in_force}. Leave some out.",)


def test_a_level_beyond_school_has_none_beside_it():
    assert grade_filter("Graduate within 3") == {"education_levels": {"$in": ["Graduate"]}}


@pytest.fixture
def unfilled(tmp_path: Path) -> LocalCatalog:
    return LocalCatalog(tmp_path / "unfilled", "none")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("jurisdiction", "No standard here has a jurisdiction. Leave this filter out."),
        ("statement_label", "No standard here has a statement_label. Leave this filter out."),
        ("notation_prefix", "The standards here cannot be filtered by code. Leave it out;"),
    ],
)
async def test_where_no_standard_has_the_field_the_filter_says_to_leave_it_out(
    unfilled: LocalCatalog, tmp_path: Path, name: str, message: str
):
    host = host_of(unfilled, tmp_path)
    result = await host.call_tool("find_relevant_standards", {"activity": "x", name: "x"})
    assert message in result.text


@pytest.mark.slow
async def test_a_value_beyond_what_an_index_can_list_is_looked_for(tmp_path: Path):
    many = [standard(f"A{number}", f"X.{number}", "03", ALAND) for number in range(110)]
    many = [each.model_copy(update={"standard_set_id": f"set {each.id}"}) for each in many]
    many = [each.model_copy(update={"jurisdiction_title": f"j {each.id}"}) for each in many]
    florida = {"jurisdiction_title": "CPALMS", "jurisdiction_id": "cpalms"}
    late = standard("Z", "Z.1", "03", florida, standard_set_id="set Z")
    with PineconeServer() as server:
        server.add_index()
        client = server.client()
        await client.upsert([*many, late])
        host = host_of(client, tmp_path)
        for name, value in [
            ("standard_set_id", "set Z"), ("notation_prefix", "z.1"), ("jurisdiction", "fl"),
            ("jurisdiction", "cpalms"),
        ]:  # fmt: skip
            given = {"activity": "learners meet", name: value}
            answer = (await host.call_tool("find_relevant_standards", given)).structured
            assert [each["_id"] for each in answer["results"]] == ["Z"]
        await client.aclose()


async def test_a_catalog_that_cannot_be_read_is_an_error_of_its_own(
    unfilled: LocalCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def fail(*_: object) -> None:
        raise CatalogError("the index is gone; run `standards-mcp data build`")

    monkeypatch.setattr(LocalCatalog, "values", fail)
    host = host_of(unfilled, tmp_path)
    given = {"activity": "x", "jurisdiction": "Aland"}
    result = await host.call_tool("find_relevant_standards", given)
    assert result.structured["error_type"] == "api_error"
    assert "data build" in result.text


def test_the_filters_are_arguments_that_every_client_accepts(
    unfilled: LocalCatalog, tmp_path: Path
):
    arguments = arguments_of(host_of(unfilled, tmp_path))
    assert set(NAMES) <= arguments.keys()
    for name in NAMES:
        assert arguments[name]["type"] in ("string", "boolean", "integer")
        assert 40 < len(arguments[name]["description"]) < 200


def test_they_go_when_the_plugin_is_disabled(unfilled: LocalCatalog, tmp_path: Path):
    host = host_of(unfilled, tmp_path, plugins={"filters": {"enabled": False}})
    assert not arguments_of(host).keys() & set(NAMES)


async def test_an_admin_may_fix_a_filter_and_hide_it(catalog: Catalog, tmp_path: Path):
    fixed = {"arguments": {"jurisdiction": {"fixed": "Aland"}}}
    host = host_of(catalog, tmp_path, tools={"overrides": {"find_relevant_standards": fixed}})
    assert "jurisdiction" not in arguments_of(host)
    given = {"activity": "learners meet", "max_results": 50}
    answer = (await host.call_tool("find_relevant_standards", given)).structured
    assert sorted(each["_id"] for each in answer["results"]) == ["A", "B", "C"]


def test_the_distribution_announces_the_plugin():
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    points = tomllib.loads(text)["project"]["entry-points"][ENTRY_POINT_GROUP]
    assert points == {"filters": f"{FiltersPlugin.__module__.partition('.')[0]}:FiltersPlugin"}


@given(st.text(max_size=40))
def test_whatever_is_given_as_a_grade_is_understood_or_refused(text: str):
    try:
        expression = grade_filter(text)
    except InvalidInputError:
        return
    assert expression is None or set(expression["education_levels"]["$in"]) <= set(GRADES)


@given(st.sampled_from(SCHOOL_GRADES), st.integers(0, 10**30))
def test_within_goes_as_far_down_as_up_and_ends_with_school(grade: str, count: int):
    expression = grade_filter(f"{grade} within {count}")
    assert expression is not None
    place = SCHOOL_GRADES.index(grade)
    expected = [each for each in SCHOOL_GRADES if abs(SCHOOL_GRADES.index(each) - place) <= count]
    assert expression["education_levels"]["$in"] == expected
