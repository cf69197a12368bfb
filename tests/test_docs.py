"""What the documents say is what the program does."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from standards_mcp import cli, hookspecs
from standards_mcp.config.loading import load_settings

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

REST_OF_THE_TUTORIAL = """
from collections.abc import Mapping
from typing import Literal
from standards_mcp import CallContext, InvalidInputError, Prompt, Resource

class Unit(BaseModel):
    lessons: list[str]

async def draft(topic: str, grade: str, number: int) -> str:
    return f"{{topic}}, grade {{grade}}: {{number}}"

{asking}
{prompts}

class WholePlugin(RubricsPlugin):
    register_prompts = hookimpl(register_prompts)

    @hookimpl
    def register_tools(self):
        unit = Tool(name="build_unit", function=build_unit, read_only=True)
        return [*super().register_tools(), unit]

    @hookimpl
    def register_resources(self):
        return [{resource}]

    async def rubric(self, code: str, levels: int = 4) -> Rubric:
        return Rubric(standard=code, levels=["Level"] * levels)

    async def codes(self, typed: str, others: Mapping[str, str]) -> list[str]:
        return [each.statement_notation for each in await self.context.catalog.suggest(typed)]

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


@pytest.mark.usefixtures("starter_catalog")
def test_the_plugin_of_the_tutorial_works(
    install: Callable[..., Path], capfd: pytest.CaptureFixture[str]
):
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


def test_the_tests_of_the_tutorial_pass(install: Callable[..., Path], tmp_path: Path):
    plugin, asking, prompts, resource = blocks("docs/plugins/writing.md", "python")
    rest = REST_OF_THE_TUTORIAL.format(asking=asking, prompts=prompts, resource=resource)
    source = plugin + rest
    tests = "\n".join(blocks("docs/plugins/testing.md", "python"))
    module = install("rubrics", source).rename(tmp_path / "standards_mcp_rubrics.py")
    file = module.with_name("test_rubrics.py")
    file.write_text(tests, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-pno:standards_mcp", file]
    command += ["-pstandards_mcp.testing", f"--rootdir={tmp_path}", "-cno.ini"]
    (tmp_path / "no.ini").touch()
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize(
    "example",
    blocks("docs/administering.md", "toml"),
    ids=lambda text: text.partition("\n")[0].strip("[]"),
)
def test_the_configurations_in_the_documents_are_without_a_mistake(
    example: str, install: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
):
    for name in ("GITHUB_TOKEN", "WIKI_TOKEN"):
        monkeypatch.setenv(name, "some-secret")
    for program in ("/opt/rubrics/bin/python", "github-mcp-server"):
        example = example.replace(program, sys.executable)
    install("rubrics", TEAM_PLUGIN, distribution="acme-rubrics")
    Path("standards-mcp.toml").write_text(example, encoding="utf-8")
    assert cli.run(["config", "check"]) == 0
    for profile in load_settings().settings.profiles:
        assert cli.run(["--profile", profile, "config", "check"]) == 0


def visible(
    recipe: str, install: Callable[..., Path], capfd: pytest.CaptureFixture[str]
) -> set[str]:
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
    recipe: str, tools: set[str], install: Callable[..., Path], capfd: pytest.CaptureFixture[str]
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
    known = {*cli.cli.list_commands(context), "<plugin>"}
    mention = re.compile(r"(?:^    |`|bin/)standards-mcp (?:--?\S+ )*([a-z<][a-z>]+)", re.MULTILINE)
    named = mention.findall(document.read_text(encoding="utf-8"))
    assert set(named) <= known


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target
