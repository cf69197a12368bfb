"""`views explore`: the page in a browser, and a server that answers nobody else."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest
from playwright.async_api import Page, expect
from support.browser import HOSTILE, needs_chromium, open_page, serious_findings
from support.hosts import Install
from support.waiting import WAIT, wait_until

from standards_mcp import ToolResult
from standards_mcp.host import Host
from standards_mcp_views import explore
from standards_mcp_views.explore import Server

expect.set_options(timeout=WAIT * 1000)


@pytest.fixture
def server(host: Host) -> Iterator[Server]:
    """A server whose calls run in a thread of their own, as in the main thread of the command."""
    server = Server()

    def answer() -> None:
        with asyncio.Runner() as runner:
            running = host.running()
            runner.run(running.__aenter__())

            def call(name: str, arguments: Any) -> ToolResult:
                return runner.run(host.call_tool(name, arguments))

            server.answer_calls(call)
            runner.run(running.__aexit__(None, None, None))

    threads = [Thread(target=answer), Thread(target=server.serve_forever)]
    for thread in threads:
        thread.start()
    yield server
    server.shutdown()
    server.server_close()
    server.calls.put(None)
    for thread in threads:
        thread.join()


def post(server: Server, tool: str, body: Any) -> httpx2.Response:
    return httpx2.post(f"{server.url}tools/{tool}", content=json.dumps(body), timeout=60)


def test_the_page_calls_the_tools_that_read(server: Server):
    answer = post(server, "find_relevant_standards", {"activity": "comparing fractions"})
    assert (answer.status_code, answer.json()["success"]) == (200, True)
    assert answer.json()["results"]
    failed = post(server, "find_relevant_standards", {"grade": "99"})
    assert (failed.status_code, failed.json()["success"]) == (422, False)
    assert "grade" in failed.json()["message"]


@pytest.mark.parametrize(
    ("tool", "body"),
    [("web_search", {}), ("", {}), ("browse_standards", []), ("browse_standards", "x")],
)
def test_the_page_calls_no_other_tool(server: Server, tool: str, body: Any):
    assert post(server, tool, body).status_code == 400


def test_only_the_address_with_the_token_is_answered(server: Server):
    base, token = server.url.rstrip("/").rsplit("/", 1)
    for path in (
        "/",
        "/tools/browse_standards",
        f"/{token}x/",
        f"/{token[:-1]}/",
        f"/{token}/../",
        "/\u00fc/",
    ):
        assert httpx2.get(f"{base}{path}").status_code == 404
    assert httpx2.get(server.url, headers={"host": "evil.example"}).status_code == 404
    assert httpx2.get(server.url, headers={"origin": "https://evil.example"}).status_code == 404
    assert httpx2.put(server.url).status_code == 501
    good = httpx2.get(server.url)
    assert good.status_code == 200
    assert "frame-ancestors 'none'" in good.headers["content-security-policy"]
    assert good.headers["cache-control"] == "no-store"


def test_a_body_that_is_too_long_is_not_read(server: Server):
    assert post(server, "browse_standards", {"parent": "x" * 200_000}).status_code == 400


def test_a_call_that_is_too_late_does_not_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(explore, "_CALL_SECONDS", 0.05)
    server = Server()
    serving = Thread(target=server.serve_forever)
    serving.start()
    late = post(server, "browse_standards", {})
    server.shutdown()
    server.server_close()
    serving.join()
    calls: list[str] = []
    server.calls.put(None)
    server.answer_calls(lambda name, _: calls.append(name) or ToolResult(text=""))
    assert (late.status_code, late.json()["message"]) == (502, "The call took too long.")
    assert calls == []


def test_it_waits_for_calls_in_short_steps(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(explore, "_WAIT_SECONDS", 0.01)
    server = Server()
    answering = Thread(target=server.answer_calls, args=(lambda _name, _: ToolResult(text="yes"),))
    answering.start()
    answering.join(0.1)
    assert answering.is_alive()
    answer: Future[ToolResult] = Future()
    server.calls.put(("browse_standards", {}, answer))
    assert answer.result(WAIT).text == "yes"
    server.calls.put(None)
    answering.join(WAIT)
    server.server_close()


@pytest.mark.parametrize(
    ("error", "is_reported"), [(BrokenPipeError(), False), (ValueError("odd"), True)]
)
def test_a_closed_tab_prints_nothing(
    error: Exception, is_reported: bool, capsys: pytest.CaptureFixture[str]
):
    server = Server()
    try:
        raise error
    except (BrokenPipeError, ValueError):
        server.handle_error(None, ("127.0.0.1", 1))
    server.server_close()
    assert ("Traceback" in capsys.readouterr().err) == is_reported


@pytest.mark.processes
@pytest.mark.usefixtures("starter_catalog")
@pytest.mark.skipif(sys.platform == "win32", reason="needs a signal of POSIX")
@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        (["views", "explore", "1/2 & more", "--grade", "3"], "#1%2F2%20%26%20more&grade=3"),
        (["search", "halves", "--grade", "K-2", "--open"], "#halves&grade=K-2"),
        (["search", "halves", "--open"], "#halves"),
    ],
)
def test_a_command_opens_the_page_with_the_query(
    install: Install, tmp_path: Path, options: list[str], fragment: str
):
    install("views", "from standards_mcp_views import ViewsPlugin")
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n', encoding="utf-8")
    browser.chmod(0o755)
    command = [sys.executable, "-m", "standards_mcp", *options]
    variables = {**os.environ, "BROWSER": str(browser)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        assert httpx2.get(url).status_code == 200
        wait_until(lambda: opened.exists() and opened.read_text("utf-8").strip() == url)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert url.endswith(f"/{fragment}")
    assert (process.returncode, rest) == (0, "End with Ctrl-C.\nEnded.\n")


@asynccontextmanager
async def opened(server: Server, fragment: str = "", **options: Any) -> AsyncGenerator[Page]:
    async with open_page(**options) as page:
        await page.goto(server.url + fragment)
        yield page


async def choose(page: Page, name: str, option: str) -> None:
    field = page.get_by_label(name, exact=True)
    await field.focus()
    await field.select_option(option)


async def fake(page: Page, answer: str) -> None:
    """Let a function of JavaScript answer calls, by structured content or the text of an error."""
    await page.evaluate(
        f"""() => {{
          const answer = {answer};
          LocalServer.prototype.callTool = async (name, args) => {{
            const made = answer(name, args);
            if (typeof made === "string") throw new Error(made);
            return made;
          }};
        }}"""
    )


BIG_STATE = """(name, { parent, page }) => {
  if (!parent) return { results: [] };
  if (!parent.startsWith("CSTA")) return "It is down.";
  const set = (index) => ({ _id: `${page}-${index}`, kind: "set", subject: "Music",
    description: `Grade ${(page * 50 + index) % 11 + 1}` });
  const results = Array.from({ length: page === 3 ? 20 : 50 }, (_, index) => set(index));
  return { results, ...(page < 3 && { next_page: page + 1 }) };
}"""
"""A state with three pages of sets, beside one that cannot be read."""


def hostile_answer(text: str) -> dict[str, Any]:
    fields = ("statement_notation", "description", "content", "subject", "standard_set_title")
    standard = dict.fromkeys((*fields, "jurisdiction_title", "source_url", "core_idea"), text)
    levels = {"education_levels": [text], "found_by": "stated", "score": 0.5}
    others = [standard | levels | {"_id": f"{text}{number}"} for number in range(2)]
    related = {"ancestors": others[:1], "children": others, "siblings": others}
    return {"results": [others[0] | related, others[1]], "message": text}


async def columns_of_nodes(page: Page) -> dict[str, int]:
    """Return the column of each node of the graph, from where it is drawn."""
    boxes = await page.locator(".graph .node").evaluate_all(
        """(nodes) => nodes.map((node) => [node.querySelector(".title").textContent,
          node.querySelector("rect").getBBox().x])"""
    )
    places = sorted({x for _, x in boxes})
    return {code: places.index(x) for code, x in boxes}


in_browser = [
    pytest.mark.anyio,
    pytest.mark.slow,
    needs_chromium,
]


class TestInABrowser:
    """The page as a teacher uses it."""

    pytestmark = in_browser

    async def test_it_searches_while_one_types_and_narrows_by_grade(self, server: Server):
        async with opened(server) as page:
            node = page.get_by_role("button", name="Open Common Core State Standards")
            await expect(node).to_be_visible()
            await page.get_by_role("searchbox", name="Describe").fill("compare fractions")
            await expect(page.locator(".card").first).to_be_visible()
            await choose(page, "Grade", "4")
            await expect(page.locator(".card .code").first).to_have_text("4.NF.A.2")

    async def test_a_slow_answer_replaces_no_newer_page(self, server: Server):
        async with opened(server, "#compare%20fractions") as page:
            await page.evaluate(
                """() => {
                  const now = window.fetch;
                  const isSlow = (url) => url.includes("/get_");
                  window.held = [];
                  window.fetch = async (url, options) => {
                    if (isSlow(url)) await new Promise((go) => window.held.push(go));
                    return now(url, options);
                  };
                }"""
            )
            release = (
                "held.splice(0).forEach((go) => go()); new Promise((go) => setTimeout(go, 500))"
            )
            await page.get_by_role("button", name="Details of").first.click()
            await page.get_by_role("button", name="Collected (0)").click()
            await page.evaluate(release)
            await expect(page.get_by_text("Nothing is collected.")).to_be_visible()
            await page.get_by_role("searchbox", name="Describe").fill("telling time")
            await page.get_by_role("button", name="Details of").first.click()
            await page.evaluate(release)
            await expect(page.get_by_role("heading", level=1)).to_be_focused()
            await page.get_by_role("button", name="Grades before and after").click()
            await page.get_by_role("button", name="← Back").click()
            await page.evaluate(release)
            await expect(page.locator("main")).to_be_focused()
            await expect(page.get_by_role("status")).to_have_text("")

    async def test_it_begins_with_the_query_of_the_address(self, server: Server):
        async with opened(server, "#compare%20fractions") as page:
            await expect(page.locator(".card").first).to_be_visible()
            assert await page.get_by_role("searchbox", name="Describe").input_value() == (
                "compare fractions"
            )

    async def test_it_begins_with_the_grade_of_the_address(self, server: Server):
        async with opened(server, "#halves&grade=K-2") as page:
            await expect(page.locator(".card").first).to_be_visible()
            assert await page.get_by_label("Grade", exact=True).input_value() == "K-2"
            grades = await page.locator(".card .chip:first-child").all_text_contents()
            assert set(grades) <= {"Grade K", "Grade 1", "Grade 2"}
            await page.get_by_role("button", name="Browse").click()
            await choose(page, "State or body", "CSTA")
            await expect(page.locator("main > .tree > .node")).to_have_count(1)

    async def test_collected_standards_are_saved_and_removed(self, server: Server, tmp_path: Path):
        async with opened(server, "#compare%20fractions") as page:
            await page.get_by_role("checkbox").first.check()
            await page.get_by_role("checkbox").nth(1).check()
            await page.get_by_role("button", name="Collect", exact=True).click()
            await page.reload()
            await page.get_by_role("button", name="Collected (2)").click()
            for name in ("CSV", "Markdown", "JSON"):
                async with page.expect_download() as download:
                    await page.get_by_role("button", name=name).click()
                file = tmp_path / (await download.value).suggested_filename
                await (await download.value).save_as(file)
                assert "NF" in file.read_text(encoding="utf-8")
            await page.get_by_role("button", name="Remove").first.click()
            await expect(page.get_by_role("button", name="Collected (1)")).to_be_visible()

    async def test_sets_are_narrowed_by_state_subject_and_grade(self, server: Server):
        async with opened(server) as page:
            nodes = page.locator("main > .tree > .node")
            await expect(nodes).to_have_count(4)
            await choose(page, "State or body", "Common Core State Standards")
            await expect(page.get_by_text("36 of 36 sets")).to_be_visible()
            await expect(page.get_by_label("State or body", exact=True)).to_be_focused()
            await choose(page, "Subject", "Mathematics")
            await expect(nodes).to_have_count(15)
            await choose(page, "Grade", "10")
            titles = "\n".join(await nodes.all_inner_texts())
            assert "High School, Algebra" in titles
            assert "Practices" in titles  # for any grade
            assert "Grade 1\n" not in titles
            await choose(page, "Grade", "K")
            await expect(nodes).to_have_count(2)
            await page.get_by_role("button", name="Open Common Core Mathematics: Kinder").click()
            await page.get_by_role("button", name="Open K.CC", exact=True).click()
            await page.get_by_role("button", name="K.CC", exact=True).click()
            await page.get_by_role("button", name="← Back").click()
            await expect(page.get_by_role("button", name="Open K.CC.A")).to_be_visible()
            await choose(page, "State or body", "CSTA")
            await expect(page.get_by_text("1 of 5 sets")).to_be_visible()
            assert await page.get_by_label("Subject", exact=True).input_value() == ""

    async def test_all_pages_of_a_state_are_browsed_and_failures_are_told(self, server: Server):
        async with opened(server) as page:
            await expect(page.locator(".node").first).to_be_visible()
            await fake(page, BIG_STATE)
            await page.get_by_role("button", name="Browse").click()
            await choose(page, "State or body", "CSTA")
            await expect(page.get_by_text("120 of 120 sets")).to_be_visible()
            await choose(page, "Grade", "5")
            await expect(page.get_by_text("11 of 120 sets")).to_be_visible()
            await choose(page, "State or body", "C3 Framework (NCSS)")
            await expect(page.get_by_role("alert")).to_have_text("It is down.")
            await choose(page, "Grade", "")
            await expect(page.get_by_role("alert")).to_have_text("It is down.")

    async def test_two_standards_stand_side_by_side_with_their_own_words_marked(
        self, server: Server
    ):
        async with opened(server, "#compare%20fractions") as page:
            await page.get_by_role("checkbox").first.check()
            assert await page.get_by_role("button", name="Compare").count() == 0
            await page.get_by_role("checkbox").nth(1).check()
            await page.get_by_role("button", name="Compare").click()
            table = page.get_by_role("table")
            await expect(table.get_by_role("columnheader")).to_have_text(["4.NF.A.2", "3.NF.A.3d"])
            row = table.get_by_role("row").filter(has=page.get_by_role("rowheader", name="Grade"))
            assert await row.get_by_role("cell").all_inner_texts() == ["4", "3"]
            await expect(page.get_by_text("They also differ in: set, grade")).to_be_visible()
            own = [
                " ".join(await cell.locator("mark").all_inner_texts())
                for cell in await table.get_by_role("row").nth(1).get_by_role("cell").all()
            ]
            assert "Compare" in own[0]
            assert "Decide" in own[1]
            assert not {"fractions", "Write"} & {*own[0].split(), *own[1].split()}
            await table.get_by_role("button", name="3.NF.A.3d").click()
            await expect(page.get_by_role("heading", level=1)).to_have_text("3.NF.A.3d")
            await page.get_by_role("button", name="← Back").click()
            await expect(table).to_be_visible()
            await page.get_by_role("button", name="← Back").click()
            await expect(page.locator(".card.chosen")).to_have_count(2)

    @pytest.mark.parametrize(
        ("left", "right", "note", "marked"),
        [
            ("Add <b>", "Add <b>", "Both texts are the same. Everything else is the same.", []),
            ("Count cats.", "Draw dogs", "The texts have few words in common.", []),
            ("word " * 401, "word", "The texts are too long to mark differences.", []),
            ("", "", "Both texts are the same.", []),
            ("", "Add", "The texts have few words in common.", []),
            ("Add one (small) number", "add two small, odd numbers",
             "Marked words are in one text only.", ["one", "number", "two", "odd numbers"]),
        ],
    )  # fmt: skip
    async def test_the_note_says_how_two_texts_differ(
        self, server: Server, left: str, right: str, note: str, marked: list[str]
    ):
        async with opened(server) as page:
            await expect(page.locator(".node").first).to_be_visible()
            await page.evaluate(
                "(pair) => show(...comparePage({}, pair))",
                [{"description": left}, {"description": right}],
            )
            await expect(page.locator("main .muted").first).to_contain_text(note)
            assert await page.locator("mark").all_inner_texts() == marked

    async def test_a_progression_is_a_graph_with_grades_as_columns(self, server: Server):
        async with opened(server, "#3.NF.A.1") as page:
            await page.get_by_role("button", name="Details of 3.NF.A.1", exact=True).click()
            await page.get_by_role("button", name="Progression").click()
            graph = page.locator(".graph svg")
            grades = graph.locator(".grade")
            await expect(grades).to_have_text([f"Grade {number}" for number in range(1, 6)])
            assert await columns_of_nodes(page) == {
                "3.NF.A.1": 2, "2.G.A.3": 1, "1.G.A.3": 0, "4.NF.A.1": 3, "4.NF.A.2": 3,
                "4.NF.B.3": 3, "5.NF.A.1": 4, "5.NF.A.2": 4, "5.NF.B.4": 4, "5.NF.B.6": 4,
                "5.NF.B.7": 4,
            }  # fmt: skip
            ends = await graph.locator(".edge").evaluate_all(
                "(edges) => edges.map((edge) => [edge.getPointAtLength(0).x,"
                " edge.getPointAtLength(edge.getTotalLength()).x])"
            )
            assert len(ends) >= 10
            assert all(start < end for start, end in ends)
            await page.get_by_role("button", name="Earlier grades").click()
            await expect(grades.first).to_have_text("Grade K")
            await expect(page.get_by_role("button", name="Earlier grades")).to_be_focused()
            await page.get_by_role("button", name="Earlier grades").click()
            await expect(page.get_by_role("button", name="Earlier grades")).to_be_disabled()
            await expect(page.get_by_text("Pre-K")).to_be_visible()

    async def test_a_node_of_the_graph_is_a_button_with_its_connections(self, server: Server):
        async with opened(server, "#RL.4.1") as page:
            await page.get_by_role("button", name="Details of RL.4.1", exact=True).click()
            await page.get_by_role("button", name="Progression").click()
            node = page.get_by_role("button", name="RL.5.1; Grade 5; ")
            await expect(node).to_have_accessible_name(
                re.compile(r"follows RL\.4\.1 \(same number in the code\); leads to RL\.6\.1 ")
            )
            assert await page.locator(".edge.likeness").count() == 0
            await node.focus()
            await page.keyboard.press("Enter")
            detail = page.locator("#detail")
            await expect(detail).to_contain_text("leads to RL.6.1")
            await expect(node).to_be_focused()
            await detail.get_by_role("button", name="Collect").click()
            await expect(page.get_by_role("button", name="Collected (1)")).to_be_visible()
            await detail.get_by_role("button", name="Compare with the first").click()
            await expect(page.get_by_role("columnheader")).to_have_text(["RL.4.1", "RL.5.1"])
            await page.get_by_role("button", name="← Back").click()
            await node.press(" ")
            await detail.get_by_role("button", name="Progression from here").click()
            await expect(page.get_by_role("heading", level=1)).to_have_text("Progression of RL.5.1")
            await page.get_by_text("As a list").click()
            await expect(page.locator("details li").first).to_contain_text("Grade 3; leads to")

    async def test_a_standard_without_neighbours_says_so(self, server: Server):
        async with opened(server, "#MP1") as page:
            await page.get_by_role("button", name="Details of").first.click()
            await page.get_by_role("button", name="Progression").click()
            await expect(page.locator(".graph .node")).to_have_count(1)
            await expect(page.get_by_text("no grade of school comes after")).to_be_visible()
            before = page.get_by_text("for pre-kindergarten in Mathematics are here.")
            await expect(before).to_have_text(re.compile(r"are here\.$"))  # and names no tool

    @pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
    async def test_hostile_text_is_shown_as_text(self, server: Server, text: str):
        async with opened(server, "#x", viewport={"width": 320, "height": 700}) as page:
            await fake(page, f"() => ({json.dumps(hostile_answer(text))})")
            await page.get_by_role("searchbox", name="Describe").fill("y")
            await expect(page.locator(".card .text").first).to_have_text(text)
            await page.get_by_role("checkbox").first.check()
            await page.get_by_role("button", name="Progression").click()
            title = page.locator(".graph .node .title").first
            assert (await title.text_content() or "")[:3] == text[:3]
            box, letters = [
                await page.locator(f".graph .node.start {part}").first.bounding_box()
                for part in ("rect", ".title")
            ]
            assert letters["x"] + letters["width"] <= box["x"] + box["width"]
            await page.locator(".graph .node").nth(1).press("Enter")
            await page.get_by_role("button", name="Compare with the first").click()
            await expect(page.get_by_role("cell").first).to_have_text(text)
            assert await page.locator("img, script").count() == 1
            assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")

    async def test_a_print_has_the_codes_and_addresses_and_no_controls(self, server: Server):
        async with opened(server, "#compare%20fractions", color_scheme="dark") as page:
            await page.evaluate("window.print = () => { window.printed = true; }")
            await page.get_by_role("button", name="Print").click()
            assert await page.evaluate("window.printed")
            await page.emulate_media(media="print")
            await expect(page.get_by_role("searchbox").first).to_be_hidden()
            await expect(page.get_by_role("button", name="Details of").first).to_be_hidden()
            await expect(page.locator(".card .code").first).to_be_visible()
            link = page.locator("[data-url]").first
            assert "https://" in await link.evaluate(
                "(it) => getComputedStyle(it, '::after').content"
            )
            ground = "getComputedStyle(document.body).backgroundColor"
            assert await page.evaluate(ground) == "rgb(255, 255, 255)"
            await page.emulate_media(media="screen")
            await page.get_by_role("checkbox").first.check()
            await page.get_by_role("button", name="Collect", exact=True).click()
            await page.get_by_role("button", name="Collected (1)").click()
            await page.emulate_media(media="print")
            await expect(page.locator(".tree .code")).to_be_visible()
            await expect(page.locator(".tree input, .tree button:not(.plain)").first).to_be_hidden()

    @pytest.mark.parametrize("width", [320, 700, 1200])
    @pytest.mark.parametrize("scheme", ["dark", "light"])
    async def test_each_page_is_accessible(self, server: Server, width: int, scheme: str):
        viewport = {"width": width, "height": 800}
        async with opened(server, viewport=viewport, color_scheme=scheme) as page:

            async def check(name: str) -> None:
                assert (name, await serious_findings(page)) == (name, [])
                too_wide = "document.documentElement.scrollWidth > innerWidth"
                assert (name, await page.evaluate(too_wide)) == (name, False)

            await choose(page, "State or body", "Common Core State Standards")
            await expect(page.get_by_label("Subject", exact=True)).to_be_visible()
            await check("sets")
            await page.get_by_role("searchbox", name="Describe").fill("compare fractions")
            for number in (0, 1):
                await page.get_by_role("checkbox").nth(number).check()
            await check("results")
            await page.get_by_role("button", name="Collect", exact=True).click()
            await page.get_by_role("button", name="Collected (2)").click()
            await page.get_by_role("checkbox").first.check()
            await check("collected")
            await page.get_by_role("button", name="Progression").click()
            await page.locator(".graph .node").nth(1).press("Enter")
            await page.get_by_text("As a list").click()
            await check("progression")
            await page.get_by_role("button", name="Compare with the first").click()
            await expect(page.get_by_role("table")).to_be_visible()
            await check("comparison")
