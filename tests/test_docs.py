"""What the documents say is what the program does."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from textwrap import indent

import click
import pytest
from support.hosts import Install, MakeHost, started
from support.waiting import until

from standards_mcp import Tool, cli, commands, hookspecs
from standards_mcp.config.loading import load_settings
from standards_mcp.loading.discovery import installed_plugins

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "plugins").glob("*/README.md")),
]

TEAM_PLUGIN = """
from standards_mcp import Plugin, Tool, hookimpl

def draft(code: str) -> str:
    "Draft a rubric."
    return code

class RubricsPlugin(Plugin):
    @hookimpl
    def register_tools(self):
        return [
            Tool(name="rubrics.draft", function=draft, read_only=True),
            Tool(name="rubrics.save", function=draft),
        ]
"""

WITH_COMMAND = """
from standards_mcp import hookimpl

class CountsPlugin(CountsPlugin):
    @hookimpl
    def register_commands(self):
        return [count]
"""

SEARCH_DOCS = """
import asyncio
from pathlib import Path
from typing import Annotated

from standards_mcp import (
    ApiKey, CallContext, Plugin, PluginSettings, ServiceUrl, Variable, tool
)
from standards_mcp_documents import DocumentReader
from standards_mcp_encoders import open_encoder

{settings}
{embedding}
{reading}

class Index:
    async def search(self, query):
        return [str(size) for size in (await embed([query])).shape]


class SearchDocsPlugin(Plugin[SearchSettings]):
    settings_type = SearchSettings
    index = Index()

{logging}
"""
TABLES = """
from collections.abc import Iterable
from functools import partial
from standards_mcp import Plugin, PluginSettings, Tool, hookimpl

class TablesSettings(PluginSettings):
    tables: list[str] = []

class TablesPlugin(Plugin[TablesSettings]):
    settings_type = TablesSettings

{values}
    def count(self, name: str) -> int:
        return len(name)
"""

REST_OF_THE_TUTORIAL = """
from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from standards_mcp import (
    ApiError, CallContext, InvalidInputError, ToolResult, hookimpl, prompt, resource, skill,
)

{markdown}
{failing}
{asking}

class WholePlugin(RubricsPlugin):
    @hookimpl
    def register_tools(self):
        return [build_unit, plan_rubric]

{prompts}
{resource}

{skill}

    @tool(read_only=True)
    def call_service(
        self, status: Annotated[int, Field(description="What the service answers.")]
    ) -> str:
        "Call the service of the tests."
        return read_service(status, 2.5)

RubricsPlugin = WholePlugin
"""


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", read(name), re.MULTILINE | re.DOTALL)


def signature(name: str) -> str:
    """Return a hook's signature with the names that an author writes."""
    text = f"{name}{inspect.signature(getattr(hookspecs, name))}"
    return text.replace("'", "")


def test_every_hook_has_a_heading_with_its_signature():
    hooks = [
        name
        for name, value in vars(hookspecs).items()
        if inspect.isfunction(value) and hasattr(value, f"{hookspecs.PROJECT}_spec")
    ]
    headings = re.findall(r"^## `(\w+\(.*)`$", read("docs/plugins/hooks.md"), re.MULTILINE)
    assert [signature(name) for name in hooks] == headings


def test_the_plugin_of_the_readme_works_and_has_twelve_lines(
    install: Install, capfd: pytest.CaptureFixture[str]
):
    (source,) = blocks("README.md", "python")
    assert len(source.splitlines()) == 12
    install("counts", source)
    assert cli.run(["call", "count_words", "--args", '{"text": "one two  three"}']) == 0
    assert json.loads(capfd.readouterr().out) == {"result": 3}


def test_the_command_that_the_hooks_show_calls_the_tool_of_the_readme(
    install: Install, capfd: pytest.CaptureFixture[str]
):
    command, *_ = blocks("docs/plugins/hooks.md", "python")
    install("counts", f"{blocks('README.md', 'python')[0]}\n{command}\n{WITH_COMMAND}")
    assert cli.run(["counts", "count", "one two  three"]) == 0
    assert capfd.readouterr().out == "3 words\n"
    assert cli.run(["counts", "count", "one two", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"result": 2}


def test_the_table_of_what_commands_share_has_all_of_it():
    text = (ROOT / "docs/plugins/hooks.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `(\w+)", text, re.MULTILINE)) == sorted(commands.__all__)


@pytest.mark.usefixtures("starter_catalog")
def test_the_plugin_of_the_tutorial_works(install: Install, capfd: pytest.CaptureFixture[str]):
    source, *_ = blocks("docs/plugins/writing.md", "python")
    project = tomllib.loads(blocks("docs/plugins/writing.md", "toml")[0])["project"]
    install("rubrics", source, requires=project["dependencies"])
    arguments = ["--set", "plugins.rubrics.levels=3", "call", "draft_rubric", "--args"]
    assert cli.run([*arguments, '{"code": "3.nf.1"}']) == 0
    answer = json.loads(capfd.readouterr().out)
    assert answer["levels"] == ["Level 1", "Level 2", "Level 3"]
    assert "equal parts" in answer["standard"]
    assert cli.run([*arguments, '{"code": "nonsense"}']) == 1
    assert "No standard 'nonsense'" in json.loads(capfd.readouterr().out)["message"]


def write_skill(site: Path) -> None:
    """Write the skill of the tutorial beside its plugin."""
    (text,) = blocks("docs/plugins/writing.md", "markdown")
    folder = site / "skills" / "grade-fairly"
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    (folder / "references" / "levels.md").write_text("1 to 4", encoding="utf-8")


def whole_tutorial() -> str:
    """Return the plugin with all that the later sections of the tutorial add to it."""
    plugin, *_, markdown, failing, asking, prompts, resource, view, skill, _ = blocks(
        "docs/plugins/writing.md", "python"
    )
    texts = {"prompts": prompts, "resource": f"{resource}\n{view}", "skill": skill}
    methods = {name: indent(text, "    ") for name, text in texts.items()}
    parts = {"markdown": markdown, "failing": failing, "asking": asking, **methods}
    return plugin + REST_OF_THE_TUTORIAL.format(**parts)


@pytest.mark.usefixtures("starter_catalog")
def test_the_later_sections_of_the_tutorial_do_what_they_say(
    install: Install, capfd: pytest.CaptureFixture[str]
):
    write_skill(install("rubrics", whole_tutorial()).parent)
    assert cli.run(["skills"]) == 0
    shown = capfd.readouterr().out.split(maxsplit=3)
    assert shown == ["grade-fairly", "rubrics", "skill://grade-fairly/SKILL.md", "served\n"]
    assert cli.run(["call", "plan_rubric", "--args", '{"topic": "clocks"}']) == 0
    assert "steps" in capfd.readouterr().out
    assert cli.run(["call", "call_service", "--args", '{"status": 429}']) == 1
    answer = json.loads(capfd.readouterr().out)
    assert answer["error_type"] == "api_error"
    data = {"retry_after": 2.5, "status": 429, "details": {"service": "rubrics"}}
    assert data.items() <= answer.items()


@pytest.mark.usefixtures("planted")  # skips it without the libraries of the catalog
def test_settings_logging_and_encoders_work_as_they_are_shown(
    install: Install, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    settings, logging, embedding, reading = blocks("docs/plugins/writing.md", "python")[1:5]
    install(
        "search_docs",
        SEARCH_DOCS.format(
            settings=settings, logging=indent(logging, "    "), embedding=embedding, reading=reading
        ).replace("SearchDocsPlugin", "Search_docsPlugin"),
    )
    monkeypatch.setenv("SEARCH_API_KEY", "hunter-4242")
    arguments = ["call", "find_documents", "--args", '{"query": "a"}']
    assert cli.run(["-v", *arguments]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out) == {"result": ["1", "384"]}
    assert "info: searched (dataset=docs, count=2, plugin=search_docs)" in err
    assert "tool call (" in err
    assert "dataset=docs" in err.partition("tool call (")[2]


def test_tools_can_be_made_at_run_time(install: Install, capfd: pytest.CaptureFixture[str]):
    values = blocks("docs/plugins/writing.md", "python")[5]
    install("tables", TABLES.format(values=indent(values, "    ")))
    assert cli.run(["--set", "plugins.tables.tables=['cats']", "call", "count_cats"]) == 0
    assert json.loads(capfd.readouterr().out) == {"result": 4}


def test_the_table_of_fields_is_that_of_tools():
    section = read("docs/plugins/writing.md").partition("| field | default | meaning |")[2]
    rows = section.partition("\n\n")[0].splitlines()[2:]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert named == [each.name for each in fields(Tool) if each.name != "function"]


@pytest.mark.slow
def test_the_tests_of_the_tutorial_pass(install: Install, tmp_path: Path):
    tests = "\n".join(blocks("docs/plugins/testing.md", "python"))
    source = whole_tutorial()
    module = install("rubrics", source).rename(tmp_path / "standards_mcp_rubrics.py")
    write_skill(tmp_path)
    file = module.with_name("test_rubrics.py")
    file.write_text(tests, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-pno:standards_mcp", file]
    command += ["-pno:standards_mcp_catalog", "-pstandards_mcp_catalog.testing"]
    command += ["-pstandards_mcp.testing", f"--rootdir={tmp_path}", "-cno.ini"]
    (tmp_path / "no.ini").touch()
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


SHELF = """
from collections.abc import Iterable
from standards_mcp import Plugin, Resource, hookimpl, tool

{example}
    def __init__(self, settings, context):
        super().__init__(settings, context)
        self.books = {{"emma": "Emma"}}

    def resource(self, name):
        read = lambda: self.books[name]
        return Resource(uri=f"books://{{name}}", name=name, description="A book.", function=read)
"""


@pytest.mark.anyio
async def test_the_shelf_of_the_tutorial_has_a_book_more_after_a_call(
    install: Install, make_host: MakeHost
):
    source = SHELF.format(example=blocks("docs/plugins/writing.md", "python")[-1])
    install("shelf", source)
    (shelf,) = [info for info in installed_plugins() if info.name == "shelf"]
    async with started(make_host({"shelf": shelf.load()})) as host:
        await host.call_tool("add_book", {"name": "dune", "text": "Sand"})
        await until(lambda: len(host.visible().resources) == 2)
        assert (await host.content.read_resource("books://dune")).data == "Sand"


@pytest.mark.slow
@pytest.mark.parametrize(
    "example",
    blocks("docs/administering.md", "toml"),
    ids=lambda text: text.partition("\n")[0].strip("[]"),
)
def test_the_configurations_in_the_documents_are_without_a_mistake(
    example: str, install: Install, monkeypatch: pytest.MonkeyPatch
):
    for name in ("GITHUB_TOKEN", "WIKI_TOKEN", "WIKI_SECRET", "GRADES_SECRET"):
        monkeypatch.setenv(name, "some-secret")
    for program in ("/opt/rubrics/bin/python", "github-mcp-server"):
        example = example.replace(program, sys.executable)
    install("rubrics", TEAM_PLUGIN, distribution="acme-rubrics")
    Path("standards-mcp.toml").write_text(example, encoding="utf-8")
    assert cli.run(["config", "check"]) == 0
    for profile in load_settings().settings.profiles:
        assert cli.run(["--profile", profile, "config", "check"]) == 0


def visible(recipe: str, install: Install, capfd: pytest.CaptureFixture[str]) -> set[str]:
    """Return the tools that clients get by the example under a heading."""
    install("rubrics", TEAM_PLUGIN, distribution="acme-rubrics")
    section = read("docs/administering.md").partition(f"### {recipe}\n")[2]
    example = section.partition("```toml\n")[2].partition("```")[0]
    Path("standards-mcp.toml").write_text(example, encoding="utf-8")
    capfd.readouterr()
    assert cli.run(["tools", "--json"]) == 0
    return {entry["name"] for entry in json.loads(capfd.readouterr().out) if entry["served"]}


@pytest.mark.parametrize(
    ("recipe", "tools"),
    [
        ("Locked-down classroom", {"find_relevant_standards", "get_standard_details"}),
        ("Read-only server", {"find_relevant_standards", "get_standard_details", "rubrics_draft"}),
        ("One team's plugin only", {"rubrics_draft", "rubrics_save"}),
    ],
)
def test_every_recipe_serves_what_it_says(
    recipe: str, tools: set[str], install: Install, capfd: pytest.CaptureFixture[str]
):
    assert visible(recipe, install, capfd) == tools


def test_the_table_of_keys_is_that_of_the_models():
    printed = subprocess.run(
        [sys.executable, str(ROOT / "scripts/config_table.py")],
        capture_output=True,
        check=True,
        encoding="utf-8",
    ).stdout
    page = read("docs/configuration.md")
    assert printed == page.partition("<!-- keys -->\n")[2].partition("<!-- end of keys -->")[0]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documents_name_commands_that_exist(document: Path):
    context = click.Context(cli.cli)
    plugins = {file.parent.name for file in ROOT.glob("plugins/*/pyproject.toml")}
    known = {*cli.cli.list_commands(context), *plugins, "<plugin>"}
    mention = re.compile(r"(?:^    |`|bin/)standards-mcp (?:--?\S+ )*([a-z<][a-z>]+)", re.MULTILINE)
    named = mention.findall(document.read_text(encoding="utf-8"))
    assert set(named) <= known


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_row_of_a_table_has_the_cells_of_its_head(document: Path):
    tables = re.findall(r"(?:^\|.*\n)+", document.read_text(encoding="utf-8"), re.MULTILINE)
    for head, *rows in map(str.splitlines, tables):
        for row in rows:
            assert cells(row) == cells(head), row


def cells(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row)) - 1


def test_the_table_where_a_change_goes_has_ten_rows_with_paths_that_exist():
    table = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("### Where a change goes")[1]
    )
    rows = [line for line in table.split("\n## ")[0].splitlines() if line.startswith("|")][2:]
    paths = [path for row in rows for path in re.findall(r"`(\w+/[\w./]+)`", row)]
    assert len(rows) == 10
    assert len(paths) > 2 * len(rows)
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


# A name of this project that follows an installer's command without a path or an address before it.
ON_AN_INDEX = re.compile(
    r"""(?x)
    (?: pip3?\ install | uv\ (?:pip|tool)\ install | uv\ add | pipx\ (?:install|run) | uvx )
    (?: \s+ -{1,2}[\w-]+ )* \s+ ["'`]? standards-mcp [\w{}$-]*+ (?:\[.*?\])?+ (?! \ @)
    | --with \s+ ["']? standards-mcp- [\w{}$-]++ (?! \ @)
    | \b install \s+ standards-mcp \[
    | \b install \s+ ["']? \./plugins/  # which needs the host
    """
)


def test_nothing_is_installed_by_a_name_that_a_stranger_could_register():
    named = subprocess.run(
        ["git", "ls-files", "*.md", "*.py", "*.tmpl", "*.toml", "*.yml", "Dockerfile"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert named
    # Once a release is published, an index has it; tests name what must not be written.
    exempt = {"docs/releasing.md"}
    found = [
        f"{name}: {match[0]}"
        for name in named
        if name not in exempt and not re.search(r"(^|/)tests/", name)
        for match in ON_AN_INDEX.finditer((ROOT / name).read_text("utf-8"))
    ]
    assert not found
