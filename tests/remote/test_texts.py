"""Texts of other servers: none steers a terminal, and what tools answer goes through as it is."""

from __future__ import annotations

import anyio
import pytest
from mcp import MCPError
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult
from support.hosts import OpenClient, entry_of, started
from support.odd_server import ODD
from support.waiting import until

from standards_mcp.host import Host

pytestmark = [pytest.mark.anyio, pytest.mark.processes]
entry = entry_of("odd_server.py")

PLAIN = "a\\u001b[31mb\\u202ec\\u0000d\ne"


async def test_what_people_read_of_definitions_is_cleaned(host: Host, open_newest: OpenClient):
    async with open_newest(host) as client:
        tool = next(
            each for each in (await client.list_tools()).tools if each.name.endswith("_say")
        )
        prompt = next(iter((await client.list_prompts()).prompts))
        resource = next(iter((await client.list_resources()).resources))
    for item in (tool, prompt, resource, prompt.arguments[0]):
        assert (item.title, item.description) == (PLAIN, PLAIN)
    assert ODD not in resource.name


async def test_errors_are_cleaned_and_the_content_of_answers_is_not(
    host: Host, open_newest: OpenClient
):
    async with open_newest(host) as client:
        for name in ("say", "fail"):
            result = await client.call_tool(f"peer_{name}", {})
            assert result.content[0].text == ODD
        refused = await client.call_tool("peer_refuse", {})
        assert refused.structured_content["message"] == f"server 'peer' refused it: {PLAIN}"
        prompt = await client.get_prompt("peer_greet", {})
        assert prompt.description == PLAIN
        assert prompt.messages[0].content.text == ODD
        with pytest.raises(MCPError) as caught:
            await client.read_resource("odd://one")
        assert caught.value.message == PLAIN


async def test_questions_are_cleaned(host: Host, open_client: OpenClient):
    asked: list[str] = []

    async def reply(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="decline")

    async with open_client(host, elicitation_callback=reply) as client:
        result = await client.call_tool("peer_ask", {})
    assert result.content[0].text == "asked"
    assert asked in ([PLAIN], []), "only some clients can be asked during a call"


async def test_a_flood_of_progress_comes_as_its_newest_reports(host: Host, open_newest: OpenClient):
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(*report: float | str | None) -> None:
        heard.append(report)

    async with open_newest(host) as client:
        result = await client.call_tool("peer_many", {}, progress_callback=hear)
    assert result.content[0].text == ODD
    assert heard[-1] == (10_000, None, PLAIN)
    assert len(heard) < 1000


async def test_many_requests_in_a_row_are_all_answered(host: Host):
    async with started(host):
        result = await host.call_tool("peer_ping", {})
    assert result.content[0]["text"] == "1000"


async def test_questions_that_nobody_answers_end_with_their_calls(
    host: Host, open_client: OpenClient
):
    open_questions: list[str] = []

    async def ponder(_: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        open_questions.append(params.message)
        try:
            await anyio.sleep_forever()
        finally:
            open_questions.pop()

    async with open_client(host, elicitation_callback=ponder) as client:
        for _ in range(10):
            result = await client.call_tool("peer_drop", {})
            assert result.content[0].text == ODD
        await until(lambda: not open_questions)


async def test_messages_that_make_no_sense_end_no_connection(
    host: Host, caplog: pytest.LogCaptureFixture
):
    async with started(host):
        for _ in range(3):
            result = await host.call_tool("peer_huge", {})
            assert result.content[0]["text"] == ODD
    told = [vars(each) for each in caplog.records if "unreadable message" in each.getMessage()]
    assert [each["plugin"] for each in told] == ["peer"]
