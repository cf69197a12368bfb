"""The views in Chromium, inside the reference host of MCP Apps, around a real server."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from mcp import Client
from playwright.async_api import Frame, Page, expect
from support.browser import HOSTILE, needs_chromium, open_page, serious_findings
from support.downloads import NODE, node_packages
from support.waiting import WAIT

from standards_mcp.host import Host
from standards_mcp.server.server import build_server
from standards_mcp_scaffold.new_plugin import render_plugin
from standards_mcp_views.pages import NAMES, page

expect.set_options(timeout=WAIT * 1000)
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.processes,
    needs_chromium,
]
Show: TypeAlias = Callable[..., AbstractAsyncContextManager["Shown"]]
REFERENCE_HOST = (
    "@modelcontextprotocol/ext-apps@2.0.4",
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/core@2.4.0",
    "@modelcontextprotocol/server@2.4.0",
    "zod@4",
    "esbuild@0.25.12",
)
ALL = {
    "openLinks": {},
    "downloadFile": {},
    "serverTools": {},
    "message": {"text": {}},
    "updateModelContext": {"text": {}, "structuredContent": {}},
}
ACTIVITY = {"activity": "compare fractions with paper strips", "max_results": 12}
LESSON = """Grade 3 lesson \U0001f355: fair shares
Standards: 3.NF.A.1, 4.NF.A.1 and 3.NF.A.9

Children fold paper strips into equal parts and compare the fractions.
"""
ACTIVITIES = ["Fold paper strips and compare fractions", "Tell time to the minute: 3.MD.A.1"]
LEFT, RIGHT = "Common Core Mathematics: Grade 3", "Common Core Mathematics: Grade 4"
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "results": ("find_relevant_standards", ACTIVITY),
    "standard": ("get_standard_details", {"standard_id": "3.NF.A.1"}),
    "tree": ("browse_standards", {}),
    "check": ("check_alignment", {"text": LESSON, "grade": "3"}),
    "coverage": ("check_coverage", {"activities": ACTIVITIES, "grade": "3", "subject": "Math"}),
    "comparison": ("compare_standards", {"left": LEFT, "right": RIGHT}),
}


@pytest.fixture(scope="module")
def reference_host(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of the reference host, bundled for a browser."""
    modules = node_packages(*REFERENCE_HOST)
    out = tmp_path_factory.mktemp("host") / "host.js"
    command = [NODE, modules / "esbuild/bin/esbuild", Path(__file__).with_name("host.js")]
    options = ["--bundle", "--format=iife", f"--outfile={out}", "--log-level=warning"]
    variables = {**os.environ, "NODE_PATH": str(modules)}
    subprocess.run([*command, *options], check=True, env=variables)
    return out.read_text(encoding="utf-8")


@pytest.fixture
def show(host: Host, reference_host: str) -> Show:
    """Return a function that opens a browser with the reference host of a server with the views."""
    return partial(shown, host, reference_host)


class Shown:
    """A view in the reference host."""

    frame: Frame

    def __init__(self, page: Page, client: Client) -> None:
        self.page = page
        self._client = client

    async def open(
        self, name: str, result: Any = None, *, can: Any = ALL, theme: str = "light"
    ) -> None:
        page = await self._client.read_resource(f"ui://standards/{name}.html")
        result = result or await self.call(*CALLS[name])
        await self.open_page(page.contents[0].text, CALLS[name][1], result, can, theme)

    async def open_page(
        self, html: str, arguments: Any, result: Any, can: Any = ALL, theme: str = "light"
    ) -> None:
        argument = {
            "html": html,
            "input": arguments,
            "result": result,
            "context": {"theme": theme, "containerDimensions": {"maxHeight": 480}},
            "capabilities": can,
        }
        await self.page.evaluate("(argument) => openView(argument)", argument)
        # For a moment `page.frames` also has the frame that this one replaced.
        frame = await (await self.page.wait_for_selector("iframe")).content_frame()
        assert frame
        self.frame = frame

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = await self._client.call_tool(name, arguments)
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def call_for_view(self, text: str) -> str:
        params = json.loads(text)
        return json.dumps(await self.call(params["name"], params.get("arguments") or {}))

    async def seen(self, kind: str) -> list[Any]:
        """Return the parameters of what the view asked of the host."""
        seen = await self.page.evaluate("seen")
        return [params for name, params in seen if name == kind]


@asynccontextmanager
async def shown(
    host: Host, script: str, width: int = 700, scheme: str = "light"
) -> AsyncGenerator[Shown]:
    viewport = {"width": width, "height": 500}
    async with (
        Client(build_server(host, "1.0")) as client,
        open_page(viewport=viewport, color_scheme=scheme) as page,
    ):
        view = Shown(page, client)
        await page.expose_function("callTool", view.call_for_view)
        await page.add_script_tag(content=script)
        yield view


def button(frame: Frame, name: str) -> Any:
    return frame.get_by_role("button", name=name).first


async def test_results_are_filtered_chosen_and_taken_along(show: Show):
    async with show() as view:
        await view.open("results")
        cards = view.frame.locator(".card")
        await expect(cards).to_have_count(12)
        await button(view.frame, "Grade 4").click()
        assert 0 < await cards.count() < 12
        await button(view.frame, "Grade 4").click()
        await view.frame.get_by_role("searchbox").fill("strips halves")
        assert 0 < await cards.count() < 12
        await view.frame.get_by_role("searchbox").fill("nothing like it")
        await expect(view.frame.get_by_text("No result fits the filter.")).to_be_visible()
        await view.frame.get_by_role("searchbox").fill("")
        code = await view.frame.locator(".card .code").first.text_content()
        first = view.frame.get_by_role("checkbox").first
        await first.check()
        await expect(first).to_be_focused()
        await expect(view.frame.locator(".card.chosen .code")).to_have_text(code)
        await button(view.frame, "Put into the chat").click()
        await button(view.frame, "CSV (1 chosen)").click()
        await button(view.frame, "Markdown (1 chosen)").click()
        await button(view.frame, "Official text").click()
        await expect(view.frame.get_by_role("status")).to_have_text("standards.md is saved.")
        (context,), (message,) = await view.seen("context"), await view.seen("message")
        assert code in context["content"][0]["text"]
        assert code in context["structuredContent"]["chosen_standards"][0]["statement_notation"]
        assert code in message["content"][0]["text"]
        csv, markdown = await view.seen("download")
        assert code in csv["contents"][0]["resource"]["text"].splitlines()[1]
        written = markdown["contents"][0]["resource"]["text"]
        assert written.startswith(f"- **{code}**"), written
        assert (await view.seen("link"))[0]["url"].startswith("https://")
        assert max(size["height"] for size in await view.seen("size")) <= 500


async def test_details_open_from_a_card_and_lead_through_the_tree(show: Show):
    async with show() as view:
        await view.open("results")
        await button(view.frame, "Details of").click()
        await expect(view.frame.get_by_role("heading", name="Beside it")).to_be_visible()
        await button(view.frame, "3.NF").click()
        await expect(view.frame.get_by_role("heading", level=1)).to_have_text("3.NF")
        await button(view.frame, "← Back").click()
        await button(view.frame, "← Back").click()
        await expect(view.frame.locator(".card")).to_have_count(12)


async def test_a_standard_shows_its_place_and_the_grades_around_it(show: Show):
    async with show() as view:
        await view.open("standard")
        await expect(view.frame.get_by_role("heading", level=1)).to_have_text("3.NF.A.1")
        await expect(view.frame.get_by_role("navigation")).to_contain_text("3.NF.A")
        await button(view.frame, "Grades before and after").click()
        await expect(view.frame.get_by_role("heading", name="In the grade before")).to_be_visible()
        after = view.frame.locator("section", has_text="In the grade after")
        await expect(after.get_by_role("button", name="4.NF.A.1", exact=True)).to_be_visible()


async def test_the_tree_opens_down_to_a_standard(show: Show):
    async with show() as view:
        await view.open("tree")
        for name in ("Open Common Core State Standards", "Mathematics: Grade 3", "Open 3.NF"):
            await button(view.frame, name).click()
        await button(view.frame, "Open 3.NF.A").click()
        await view.frame.get_by_role("button", name="3.NF.A.1", exact=True).click()
        await expect(view.frame.get_by_role("heading", level=1)).to_have_text("3.NF.A.1")
        await button(view.frame, "← Back").click()
        await expect(button(view.frame, "Open 3.NF.A")).to_be_visible()


MANY = {
    "results": [{"_id": f"N{number}", "kind": "jurisdiction", "description": f"State {number}"}
                for number in range(50)],
    "message": "60 jurisdictions.",
    "next_page": 2,
}  # fmt: skip


async def test_the_tree_shows_the_other_pages_of_a_level(show: Show):
    async with show() as view:
        await view.open("tree", {"content": [], "structuredContent": MANY})
        await expect(view.frame.locator(".node")).to_have_count(50)
        last = {"_id": "last", "kind": "jurisdiction", "description": "Last", "children": 1}
        answer = {"content": [], "structuredContent": {"results": [last]}}
        await view.page.evaluate(
            """(answer) => { bridge.oncalltool = async (params) => {
              seen.push(["call", params.arguments]);
              return answer;
            }; }""",
            answer,
        )
        await button(view.frame, "Show more").click()
        await expect(button(view.frame, "Open Last")).to_be_focused()
        assert await view.seen("call") == [{"parent": "", "page": 2}]
        await expect(view.frame.locator(".node")).to_have_count(51)
        assert await view.frame.get_by_role("button", name="Show more").count() == 0
        await view.open("tree", {"content": [], "structuredContent": MANY}, can={})
        await expect(view.frame.get_by_text("Ask for page 2 in the chat.")).to_be_visible()


async def test_a_tool_that_is_not_served_is_named_in_the_page(show: Show):
    async with show() as view:
        await view.open("results")
        await view.page.evaluate(
            "() => { bridge.oncalltool = async () => { throw new Error('Unknown tool.'); }; }"
        )
        await button(view.frame, "Details of").click()
        status = view.frame.get_by_role("status")
        await expect(status).to_contain_text("did not call get_standard_details")
        answer = {"content": [{"type": "text", "text": "It is not served here."}], "isError": True}
        await view.page.evaluate("(answer) => { bridge.oncalltool = async () => answer; }", answer)
        await button(view.frame, "Details of").click()
        await expect(status).to_have_text("It is not served here.")


async def test_a_client_that_refuses_the_view_is_named_in_the_page(show: Show):
    async with show() as view:
        await view.page.evaluate(
            """(html) => {
              addEventListener("message", ({ data, source }) => {
                const error = { code: -32603, message: "No views today." };
                const answer = { jsonrpc: "2.0", id: data.id, error };
                if (data.method === "ui/initialize") source.postMessage(answer, "*");
              });
              const frame = document.createElement("iframe");
              frame.sandbox = "allow-scripts";
              frame.srcdoc = html;
              document.body.replaceChildren(frame);
            }""",
            page("tree"),
        )
        await expect(view.page.frame_locator("iframe").get_by_role("alert")).to_contain_text(
            "No views today."
        )


async def test_a_lesson_is_shown_with_its_codes_marked(show: Show):
    async with show() as view:
        await view.open("check")
        lesson = view.frame.locator(".lesson")
        await expect(lesson).to_contain_text("fold paper strips")
        marks = lesson.get_by_role("button")
        assert await marks.all_inner_texts() == ["3.NF.A.1", "4.NF.A.1", "3.NF.A.9"]
        await button(view.frame, "unknown 1").click()
        cards = view.frame.get_by_role("list", name="Codes").locator(".card")
        await expect(cards).to_have_count(1)
        await expect(cards).to_contain_text("Perhaps meant:")
        await button(view.frame, "unknown 1").click()
        await marks.nth(1).click()
        await expect(view.frame.locator(".card:focus")).to_contain_text("wrong grade")
        await view.frame.locator(".card").get_by_role("button", name="3.NF.A.1").first.click()
        await expect(view.frame.get_by_role("heading", level=1)).to_have_text("3.NF.A.1")
        await button(view.frame, "← Back").click()
        await expect(lesson).to_be_visible()


async def test_a_coverage_is_a_grid_whose_cells_explain_themselves(show: Show):
    async with show() as view:
        await view.open("coverage")
        await button(view.frame, "3.MD.A.1: Covered by activity 2.").click()
        await expect(view.frame.locator("#detail")).to_contain_text("Tell time to the minute")
        await button(view.frame, "3.G.A.1: Missing.").click()
        await expect(view.frame.locator("#detail")).to_contain_text("Missing.")
        await button(view.frame, "Details").click()
        await expect(view.frame.get_by_role("heading", level=1)).to_have_text("3.G.A.1")


async def test_a_comparison_shows_both_sides_and_the_words_that_changed(show: Show):
    change = {
        "kind": "reworded",
        "left": [{"code": "3.A", "_id": "1", "text": "Add whole numbers", "grades": "3"}],
        "right": [{"code": "3.B", "_id": "2", "text": "Add numbers fast", "grades": "3"}],
        "basis": "code",
        "diff": "Add [-whole-] numbers {+fast+}",
    }
    task = {"action": "revise", "code": "3.B", "text": "Add", "why": "its words changed"}
    data = {"left": "Old", "right": "New", "counts": {"reworded": 1, "gone": 0}}
    answer = data | {"message": "1 reworded.", "changes": [change], "for_teacher": [task]}
    async with show() as view:
        await view.open("comparison", {"content": [], "structuredContent": answer})
        assert await view.frame.locator("del").all_inner_texts() == ["whole"]
        assert await view.frame.locator("ins").all_inner_texts() == ["fast"]
        await view.frame.get_by_text("What a teacher changes (1)").click()
        await expect(view.frame.get_by_text("its words changed")).to_be_visible()
        await view.open("comparison")
        await button(view.frame, "moved 1").click()
        await expect(view.frame.locator(".card")).to_have_count(1)


async def test_the_page_of_a_new_plugin_shows_its_answer_in_the_colours_of_the_client(show: Show):
    files = {path.name: text for path, text in render_plugin("acme", "views", "1", "x").items()}
    outline = {"code": "3.NF.A.1", "text": "<b>Cut</b> a pizza", "headings": ["Fractions"]}
    answer = {"content": [], "structuredContent": outline}
    failed = {"content": [{"type": "text", "text": "No standard."}], "isError": True}
    async with show(width=320, scheme="dark") as view:
        await view.open_page(files["outline.html"], {"code": "3.NF.A.1"}, answer, theme="dark")
        await expect(view.frame.get_by_role("heading")).to_have_text("3.NF.A.1")
        await expect(view.frame.get_by_text("<b>Cut</b> a pizza")).to_be_visible()
        assert await serious_findings(view.frame) == []
        context = {"styles": {"variables": {"--color-background-primary": "rgb(1, 2, 3)"}}}
        await view.page.evaluate("(context) => bridge.setHostContext(context)", context)
        await expect(view.frame.locator("body")).to_have_css("background-color", "rgb(1, 2, 3)")
        assert await view.page.evaluate("bridge.teardownResource({})") == {}
        await view.page.evaluate("(failed) => bridge.sendToolResult(failed)", failed)
        await expect(view.frame.get_by_role("alert")).to_have_text("No standard.")
        assert await view.seen("size")


async def test_errors_and_empty_answers_are_shown_as_such(show: Show):
    text = [{"type": "text", "text": "The catalog cannot be read."}]
    async with show() as view:
        await view.open("results", {"content": text, "isError": True})
        await expect(view.frame.get_by_role("alert")).to_have_text("The catalog cannot be read.")
        empty = {"success": True, "results": [], "message": "No standards match."}
        await view.open("results", {"content": text, "structuredContent": empty})
        await expect(view.frame.get_by_role("status")).to_have_text("No standards match.")
        await view.page.evaluate("bridge.sendToolCancelled({reason: 'Too slow.'})")
        await expect(view.frame.get_by_role("status")).to_contain_text("Too slow.")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_text_is_shown_as_text(show: Show, text: str):
    fields = ("_id", "content", "statement_notation", "subject", "standard_set_title", "why")
    result = dict.fromkeys(fields, text) | {"source_url": text, "score": 0.5}
    data = {"success": True, "results": [result], "message": text}
    async with show(width=320) as view:
        await view.open("results", {"content": [], "structuredContent": data})
        await expect(view.frame.locator(".card .text").first).to_have_text(text)
        assert await view.frame.locator("img, script:not(:nth-child(n+2))").count() <= 1
        assert await view.frame.get_by_role("button", name="Official text").count() == 0
        too_wide = "document.documentElement.scrollWidth > window.innerWidth"
        assert not await view.frame.evaluate(too_wide)
        await button(view.frame, "CSV (all)").click()
        (csv,) = await view.seen("download")
        assert '"=' not in csv["contents"][0]["resource"]["text"]


async def test_a_client_without_extras_gets_no_buttons_for_them(show: Show):
    async with show() as view:
        await view.open("results", can={})
        await expect(view.frame.locator(".card")).to_have_count(12)
        assert await view.frame.get_by_role("button", name="CSV").count() == 0
        assert await view.frame.get_by_role("button", name="Details").count() == 0
        await view.frame.get_by_role("checkbox").first.check()


async def test_the_theme_of_the_client_counts_and_may_change(show: Show):
    async with show() as view:
        await view.open("results")
        ground = "getComputedStyle(document.body).backgroundColor"
        assert await view.frame.evaluate(ground) == "rgb(255, 255, 255)"
        variables = {"--color-background-primary": "rgb(1, 2, 3)"}
        context = {"theme": "dark", "styles": {"variables": variables}}
        await view.page.evaluate("(context) => bridge.setHostContext(context)", context)
        await expect(view.frame.locator("body")).to_have_css("background-color", "rgb(1, 2, 3)")
        assert await view.page.evaluate("bridge.teardownResource({})") == {}


async def test_200_results_are_drawn_without_a_long_frame(show: Show):
    async with show() as view:
        answer = await view.call(*CALLS["results"])
        data = answer["structuredContent"]
        many = [
            {**data["results"][number % 12], "_id": str(number), "score": 0.5}
            for number in range(200)
        ]
        answer["structuredContent"] = {**data, "results": many}
        await view.open("results", answer)
        await expect(view.frame.locator(".card")).to_have_count(200)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (700, "light"), (1200, "dark")])
async def test_a_view_is_accessible_in_both_themes_at_every_width(
    show: Show, name: str, width: int, scheme: str
):
    async with show(width, scheme) as view:
        await view.open(name, theme=scheme)
        await view.page.wait_for_timeout(100)
        too_wide = "document.documentElement.scrollWidth > window.innerWidth"
        assert not await view.frame.evaluate(too_wide)
        assert await serious_findings(view.frame) == []
