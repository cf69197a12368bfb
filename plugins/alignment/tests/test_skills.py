"""The skills: a client reads each, and does the calls of its text step by step, as it says."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from support.skills import answer, skill_text, steps

from standards_mcp.testing import Connect
from standards_mcp_alignment import AlignmentPlugin
from standards_mcp_catalog import Catalog, open_local
from standards_mcp_lookup import LookupPlugin
from standards_mcp_resources import ResourcesPlugin

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
Open = Callable[..., AbstractAsyncContextManager[Client]]
CHECK, DETAILS, BROWSE = "check_alignment", "get_standard_details", "browse_standards"
CALLS = {
    "check-lesson-codes": [CHECK, DETAILS, CHECK],
    "review-unit": ["check_coverage", DETAILS],
    "adopt-new-edition": [BROWSE, "compare_standards", DETAILS],
}


@pytest.fixture
async def opened(connect: Connect, planted: Path) -> AsyncIterator[Open]:
    """Return a function that serves the plugin with the starter set and its neighbours."""
    catalog = open_local(planted)
    beside = {"lookup": LookupPlugin, "tree": ResourcesPlugin}
    yield lambda **config: connect(
        AlignmentPlugin, name="alignment", beside=beside, services={Catalog: catalog}, config=config
    )
    await catalog.aclose()


async def answers(client: Client, text: str) -> list[dict[str, Any]]:
    return [await answer(client, tool, arguments) for tool, arguments in steps(text)]


@pytest.mark.parametrize("name", CALLS)
async def test_the_calls_of_a_skill_succeed_and_its_words_exist(opened: Open, name: str):
    async with opened() as client:
        text = await skill_text(client, name)
        assert [tool for tool, _ in steps(text)] == CALLS[name]
        shown = json.dumps(await answers(client, text))
        schemas = {each.name: each for each in (await client.list_tools()).tools}
        fields = json.dumps([each.model_dump(mode="json") for each in schemas.values()])
        for word in re.findall(r"`([a-z]+(?:_[a-z]+)*)`", text):
            assert word in schemas or f'"{word}"' in shown + fields, word


async def test_the_checked_lesson_is_right_after_the_correction(opened: Open):
    async with opened() as client:
        first, details, second = await answers(
            client, await skill_text(client, "check-lesson-codes")
        )
    assert [each["status"] for each in first["codes"]] == ["ok", "wrong_grade", "unknown"]
    assert first["codes"][2]["nearest"]
    assert details["results"][0]["statement_notation"].endswith("3.NF.A.1")
    assert [each["status"] for each in second["codes"]] == ["ok"]


async def test_a_skill_is_served_only_while_its_tools_are(opened: Open):
    async with opened(tools={"disable": ["check_coverage"]}) as client:
        uris = [each.uri for each in (await client.list_resources()).resources]
    assert "skill://review-unit/SKILL.md" not in uris
    assert "skill://adopt-new-edition/SKILL.md" in uris
