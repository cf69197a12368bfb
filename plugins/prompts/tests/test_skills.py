"""The skills: a client reads each, and does the calls of its text step by step, as it says."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from mcp import Client
from support.skills import answer, skill_text, steps

from standards_mcp.testing import Connect, check_plugin
from standards_mcp_catalog import Catalog, open_local
from standards_mcp_lookup import LookupPlugin
from standards_mcp_prompts import PromptsPlugin
from standards_mcp_resources import ResourcesPlugin
from standards_mcp_search import SearchPlugin

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
Open = Callable[..., AbstractAsyncContextManager[Client]]

SEARCH, DETAILS = "find_relevant_standards", "get_standard_details"
BROWSE, RELATED = "browse_standards", "get_related_standards"
CALLS = {
    "align-lesson": [SEARCH, DETAILS],
    "unpack-standard": [DETAILS, SEARCH, RELATED, RELATED],
    "build-progression": [SEARCH, SEARCH, SEARCH, DETAILS, RELATED],
    "check-unit-coverage": [SEARCH, BROWSE, BROWSE],
}
BESIDE = {"lookup": LookupPlugin, "search": SearchPlugin, "tree": ResourcesPlugin}


@pytest.fixture
async def connect(connect: Connect, planted: Path) -> AsyncIterator[Open]:
    """Return a function that serves the plugin with the starter set and the tools of neighbours."""
    catalog = open_local(planted)
    yield lambda beside=BESIDE, **config: connect(
        PromptsPlugin,
        name="prompts",
        beside=beside,
        services={Catalog: catalog},
        config=config,
    )
    await catalog.aclose()


async def served(client: Client) -> list[str]:
    resources = (await client.list_resources()).resources
    return [each.name for each in resources if each.uri.endswith("/SKILL.md")]


@pytest.mark.parametrize("name", CALLS)
async def test_the_calls_of_a_skill_succeed_as_its_text_says(connect: Open, name: str):
    async with connect() as client:
        text = await skill_text(client, name)
        calls = steps(text)
        assert [tool for tool, _ in calls] == CALLS[name]
        schemas = {each.name: each.input_schema for each in (await client.list_tools()).tools}
        for tool, arguments in calls:
            found = await answer(client, tool, arguments)
            assert found["results"], (tool, arguments)
            assert arguments.keys() <= schemas[tool]["properties"].keys()
        # Whatever else looks like a tool or one of its arguments exists, too.
        words = {*re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text)} - schemas.keys()
        known = {key for schema in schemas.values() for key in schema["properties"]}
        details = (await answer(client, DETAILS, {"standard_id": "3.NF.A.1"}))["results"][0]
        assert words <= {*known, *details}


async def test_the_results_of_align_lesson_lead_from_one_step_to_the_next(connect: Open):
    async with connect() as client:
        (_, search), _ = steps(await skill_text(client, "align-lesson"))
        results = (await answer(client, SEARCH, search))["results"]
        assert {"statement_notation", "content", "score"} <= results[0].keys()
        for result in results[:3]:
            (found,) = (await answer(client, DETAILS, {"standard_id": result["_id"]}))["results"]
            assert {"description", "children", "siblings", "source_url"} <= found.keys()
        codes = [each["statement_notation"] for each in results]
        assert "CCSS.Math.Content.3.NF.A.1" in codes


async def test_the_steps_of_unpack_standard_show_where_it_stands(connect: Open):
    async with connect() as client:
        (_, details), _, (_, before), (_, after) = steps(
            await skill_text(client, "unpack-standard")
        )
        (found,) = (await answer(client, DETAILS, details))["results"]
        assert [each["statement_notation"] for each in found["ancestors"]]
        assert {"children", "siblings", "text_status", "source_url"} <= found.keys()
        assert (before["relation"], after["relation"]) == ("previous_grade", "next_grade")
        grades = [
            {
                grade
                for each in (await answer(client, RELATED, step))["results"]
                for grade in each["education_levels"]
            }
            for step in (before, after)
        ]
        assert grades == [{"02"}, {"04"}]


async def test_the_steps_of_build_progression_find_a_standard_for_each_grade(connect: Open):
    async with connect() as client:
        calls = steps(await skill_text(client, "build-progression"))
        for _, arguments in calls[:3]:
            found = (await answer(client, SEARCH, arguments))["results"]
            assert all(f"0{arguments['grade']}" in each["education_levels"] for each in found)
        assert [arguments["grade"] for _, arguments in calls[:3]] == ["2", "3", "4"]
        named = re.findall(r"`(references/\S+)`", await skill_text(client, "build-progression"))
        assert [await skill_text(client, "build-progression", file) for file in named]


async def test_the_steps_of_check_unit_coverage_find_what_is_expected(connect: Open):
    async with connect() as client:
        (_, search), (_, heading), (_, above) = steps(
            await skill_text(client, "check-unit-coverage")
        )
        codes = [
            each["statement_notation"] for each in (await answer(client, SEARCH, search))["results"]
        ]
        assert any(f"{heading['parent']}." in code for code in codes)
        expected = (await answer(client, BROWSE, heading))["results"]
        assert set(codes) & {each["statement_notation"] for each in expected}
        assert len(expected) > 1
        headings = (await answer(client, BROWSE, above))["results"]
        assert any(each["statement_notation"].endswith(heading["parent"]) for each in headings)


async def test_a_skill_is_served_only_while_its_tools_are(connect: Open):
    all_skills = list(CALLS)
    async with connect() as client:
        assert await served(client) == all_skills
    without_tree = {name: each for name, each in BESIDE.items() if name != "tree"}
    async with connect(without_tree) as client:
        assert await served(client) == all_skills[:3]
    async with connect(tools={"disable": [DETAILS]}) as client:
        assert await served(client) == all_skills[3:]


@pytest.mark.parametrize("name", CALLS)
async def test_a_skill_is_short_enough_for_every_client(connect: Open, name: str):
    async with connect() as client:
        text = await skill_text(client, name)
    assert len(text.splitlines()) < 500
    assert len(text) / 4 < 5000


def test_the_plugin_keeps_the_rules_of_skills(ten_records: Catalog):
    uris = [f"skill://{name}/SKILL.md" for name in CALLS]
    services = {Catalog: ten_records}
    check_plugin(PromptsPlugin, name="prompts", beside=BESIDE, services=services, reads=uris)
