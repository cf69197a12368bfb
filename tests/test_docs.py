"""What the documents say is what the program does."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from standards_mcp import cli, hookspecs
from standards_mcp.settings import load_settings

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


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
    headings = re.findall(r"^### `(\w+\(.*)`$", read("docs/plugins.md"), re.MULTILINE)
    assert [signature(name) for name in hooks] == headings


def test_the_plugin_of_the_tutorial_works(
    install: Callable[..., Path], capfd: pytest.CaptureFixture[str]
):
    (source,) = blocks("docs/plugins.md", "python")
    project = tomllib.loads(blocks("docs/plugins.md", "toml")[0])["project"]
    install("rubrics", source, requires=project["dependencies"])
    arguments = ["--set", "plugins.rubrics.levels=3", "call", "draft_rubric", "--args"]
    assert cli.run([*arguments, '{"code": "3.nf.1"}']) == 0
    answer = json.loads(capfd.readouterr().out)
    assert answer["levels"] == ["Level 1", "Level 2", "Level 3"]
    assert "equal parts" in answer["standard"]
    assert cli.run([*arguments, '{"code": "nonsense"}']) == 1
    assert "No standard 'nonsense'" in json.loads(capfd.readouterr().out)["message"]


def test_the_configuration_in_the_documents_is_valid():
    (example,) = blocks("docs/administering.md", "toml")
    Path("standards-mcp.toml").write_text(example, encoding="utf-8")
    assert load_settings().settings.plugins["search"].options == {"max_results": 5}


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
