"""``plugins new``: what it writes is a plugin that installs, passes its tests and is clean."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.version import Version
from support.environments import ROOT, TOOLS, built_wheel, environment_with, install, run

from standards_mcp import cli
from standards_mcp.commands import host_source
from standards_mcp.loading import discovery
from standards_mcp_scaffold.new_plugin import (
    MAX_NAME,
    PLUGIN_NAME,
    Kind,
    render_plugin,
)

KINDS = get_args(Kind)
DOCUMENTED = (
    "README.md",
    "docs/plugins/from-fastmcp.md",
    "docs/plugins/gallery.md",
    "docs/plugins/writing.md",
)
"""The pages with plugins that are whole: those that begin with a docstring."""
LONGEST = "a_" + "b" * (MAX_NAME - 2)
# What shows the new plugin, and what is to be seen.
SHOWN = {
    "tools": (["tools", "--json"], "my_tools_outline"),
    "filters": (["plugins", "info", "my_filters"], "my_filters_kind"),
    "prompts": (["prompts", "--json"], "my_prompts_plan_lesson"),
    "resources": (["resources", "--json"], "my-resources://standards/{code}"),
    "skills": (["skills", "--json"], "skill://my-skills-plan-lesson/SKILL.md"),
    "views": (["resources", "--json"], "ui://my-views/outline.html"),
}


def begin(name: str, *options: str) -> Path:
    assert cli.run(["plugins", "new", name, *options]) == 0
    return Path(f"standards-mcp-{name.replace('_', '-')}")


# Rendering


@pytest.mark.parametrize("name", ["x", LONGEST])
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_project_is_linted_and_formatted_for_any_name(kind: str, name: str):
    project = begin(name, "--kind", kind)
    run(TOOLS / "ruff", "check", "--no-cache", project)
    run(TOOLS / "ruff", "format", "--check", "--no-cache", project)


def add_documented(project: Path) -> None:
    """Add the plugins of the documentation to a new one, as modules of its package."""
    (package,) = project.glob("standards_mcp_*")
    pages = [(ROOT / name).read_text("utf-8") for name in DOCUMENTED]
    found = re.findall(r'^```python[ \w]*\n(""".*?)^```$', "".join(pages), re.MULTILINE | re.DOTALL)
    assert len(found) == 11
    for number, source in enumerate(found):
        (package / f"documented_{number}.py").write_text(source, encoding="utf-8")


def test_the_plugins_of_the_documentation_pass_the_linter_of_a_new_one():
    project = begin("rubrics")
    add_documented(project)
    page = (ROOT / "docs/plugins/testing.md").read_text("utf-8")
    tests = "\n\n\n".join(re.findall(r"^```python\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL))
    (project / "tests/test_documented.py").write_text(tests + "\n", encoding="utf-8")
    run(TOOLS / "ruff", "check", "--no-cache", project)
    run(TOOLS / "ruff", "format", "--check", "--no-cache", project)


def test_tools_are_what_a_plugin_begins_with():
    project = begin("acme")
    assert "    @tool(\n" in (project / "standards_mcp_acme/plugin.py").read_text("utf-8")
    assert (project / "standards_mcp_acme/py.typed").exists()
    assert (project / ".gitignore").exists()
    workflow = (project / ".github/workflows/test.yml").read_text("utf-8")
    assert "${{ matrix.python }}" in workflow
    described = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    assert described["name"] == "standards-mcp-acme"
    assert described["entry-points"]["standards_mcp.plugins"] == {
        "acme": "standards_mcp_acme:AcmePlugin"
    }


def test_the_readme_installs_as_the_documentation_does_and_the_host_first():
    readme = (begin("rubrics") / "README.md").read_text("utf-8")
    readme = readme.replace(f"install {shlex.quote(host_source())}\n", "install PATH_OF_A_CLONE\n")
    page = (ROOT / "docs/plugins/writing.md").read_text("utf-8")
    shell = page.partition("```sh\n")[2].partition("```")[0]
    installs = "\n".join(f"    {line}" for line in shell.splitlines() if "pip" in line)
    assert installs.count("PATH_OF_A_CLONE") == 1
    assert re.sub(r" +# or .*", "", installs) in readme


ADDRESS = "git+https://ADDRESS_OF_ITS_REPOSITORY"


@pytest.mark.parametrize(
    ("source", "step"),
    [
        ("git+https://host/s.git", "- run: python -m pip install git+https://host/s.git"),
        ("/a clone", f"# - run: python -m pip install {ADDRESS}"),
        ("standards-mcp", "- run: python -m pip install standards-mcp"),
    ],
)
def test_a_project_installs_the_host_from_where_it_came(source: str, step: str):
    files = {str(path): text for path, text in render_plugin("acme", "tools", "1", source).items()}
    assert f"    .venv/bin/pip install {shlex.quote(source)}\n" in files["README.md"]
    assert f"uv tool install {shlex.quote(source)} --with-editable ." in files["README.md"]
    assert f"      {step}\n" in files[".github/workflows/test.yml"]


@given(st.tuples(*[st.integers(0, 99)] * 3), st.sampled_from(["", ".dev1", "a1", "rc2", ".post1"]))
def test_the_host_that_writes_a_plugin_can_load_it(numbers: tuple[int, ...], suffix: str):
    version = ".".join(map(str, numbers)) + suffix
    files = render_plugin("acme", "tools", version, "git+https://host/s.git")
    (text,) = (text for path, text in files.items() if path.name == "pyproject.toml")
    project = tomllib.loads(text)["project"]
    (host,) = [item for item in map(Requirement, project["dependencies"]) if "mcp" in item.name]
    assert host.specifier.contains(Version(version), prereleases=True)
    assert not host.specifier.contains(f"{numbers[0] + 1}.0")


# Refusals


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("My-Plugin", "'My-Plugin' is not lower_snake_case with at most 30 characters"),
        ("", "is not lower_snake_case"),
        ("search", "is a plugin of standards-mcp, which is installed; choose another name"),
        ("filters", "standards-mcp-filters is a plugin of standards-mcp itself; choose another"),
        ("plugin", "'plugin' would give names like the ones of the host"),
        ("doctor", "`standards-mcp doctor` is a command; choose another name"),
    ],
)
def test_a_name_that_cannot_be_is_refused(
    name: str, expected: str, capfd: pytest.CaptureFixture[str]
):
    assert cli.run(["plugins", "new", "--", name]) == 2
    assert expected in capfd.readouterr().err
    assert not list(Path.cwd().iterdir())


def test_the_names_that_it_takes_are_the_names_of_plugins():
    assert PLUGIN_NAME == discovery.PLUGIN_NAME


@pytest.mark.processes
def test_the_tests_of_a_plugin_pass_whatever_its_name_means_to_python(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.chdir(begin("class", "--kind", "prompts"))
    command = [sys.executable, "-m", "pytest", "-q", "-pno:standards_mcp", "-pno:cacheprovider"]
    command += ["-pstandards_mcp.testing"]
    path = os.pathsep.join([str(Path.cwd()), str(ROOT)])
    variables = {**os.environ, "PYTHONPATH": path}
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_nothing_is_ever_overwritten(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    readme = begin("acme") / "README.md"
    readme.write_text("mine", encoding="utf-8")
    assert cli.run(["plugins", "new", "acme"]) == 1
    assert "standards-mcp-acme already exists; choose another name" in capfd.readouterr().err
    assert readme.read_text("utf-8") == "mine"
    begin("acme", "--into", str(tmp_path))
    assert (tmp_path / "standards-mcp-acme/README.md").exists()


# Installed


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs of an environment with the host's wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    return environment_with(built_wheel(folder), folder / "venv")


def joined_pyright(projects: list[Path]) -> Path:
    """Write a configuration for the files of all projects, by the rules that each of them has."""
    includes: list[str] = []
    rules: list[dict[str, Any]] = []
    for project in projects:
        text = (project / "pyproject.toml").read_text("utf-8")
        rules.append(tomllib.loads(text)["tool"]["pyright"])
        includes += [f"{project.name}/{part}" for part in rules[-1].pop("include")]
    assert all(each == rules[0] for each in rules)
    file = Path("pyrightconfig.json")
    file.write_text(json.dumps(rules[0] | {"include": includes}), encoding="utf-8")
    return file


def new_projects(environment: Path) -> list[Path]:
    """Begin a plugin of each kind and install it; return their folders."""
    program = environment / "standards-mcp"
    distributions = [f"standards-mcp-my-{kind}" for kind in KINDS]
    # Other plugins may be installed where the dependencies come from.
    trusted = f"trusted = {json.dumps(['standards-mcp', *distributions])}"
    Path("standards-mcp.toml").write_text(trusted, encoding="utf-8")
    for kind in KINDS:
        run(program, "plugins", "new", f"my_{kind}", "--kind", kind)
    projects = [Path(name).resolve() for name in distributions]
    install(environment, *projects)
    return projects


@pytest.mark.types
def test_new_plugins_and_documented_ones_are_typed(environment: Path):
    python, projects = environment / "python", new_projects(environment)
    add_documented(projects[0])
    for project in projects:
        run(python, "-m", "mypy", "--cache-dir", environment.parent / "mypy", cwd=project)
    # What pyright reads of the dependencies takes it long, so it looks at all of them at once.
    run(python, "-m", "pyright", "--pythonpath", python, "-p", joined_pyright(projects))


@pytest.mark.processes
@pytest.mark.slow
def test_new_plugins_install_pass_their_checks_and_show_at_once(environment: Path):
    python, program = environment / "python", environment / "standards-mcp"
    for project in new_projects(environment):
        run(python, "-m", "pytest", cwd=project)
    for arguments, expected in SHOWN.values():
        assert expected in run(program, *arguments)
    checked = json.loads(run(program, "plugins", "check", "--json"))
    found = {each["name"]: each["status"] for each in checked}
    assert {found[f"my_{kind}"] for kind in KINDS} == {"started"}
