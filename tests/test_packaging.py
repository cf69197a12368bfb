"""What describes the program to registries, apps and containers says what the program does."""

from __future__ import annotations

import fnmatch
import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from standards_mcp.config.layers import plugin_variables
from standards_mcp.config.models.settings import ENV_PREFIX, Settings
from standards_mcp_catalog.settings import CatalogSettings, PineconeCatalogSettings

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SERVER = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
MANIFEST = json.loads((ROOT / "packaging/mcpb/manifest.json").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")


def setting_variables(model: type[BaseModel], prefix: str = ENV_PREFIX) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield prefix + name.upper()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from setting_variables(field.annotation, f"{prefix}{name.upper()}__")


NAMED = plugin_variables(CatalogSettings)
PINECONE_VARIABLES = {path[-1]: name for path, name in NAMED.items() if "pinecone" in path}
VARIABLES = {
    "STANDARDS_MCP_CONFIG",
    *NAMED.values(),
    *setting_variables(Settings),
    *setting_variables(CatalogSettings, f"{ENV_PREFIX}PLUGINS__CATALOG__"),
}


def instructions(kind: str) -> list[str]:
    return re.findall(rf"^{kind} (.*)$", DOCKERFILE, re.MULTILINE)


# Plugins


def test_a_plugin_that_is_a_distribution_has_an_extra_of_its_name_and_is_in_all():
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    sources = whole["tool"]["uv"]["sources"]
    extras = PROJECT["optional-dependencies"]
    for file in ROOT.glob("plugins/*/pyproject.toml"):
        name = file.parent.name
        distribution = f"standards-mcp-{name}"
        advice = f"add to pyproject.toml: {name} = [{distribution!r}] to the optional "
        advice += f"dependencies, {distribution!r} to those of all, "
        advice += f"{distribution} = {{ workspace = true }} to tool.uv.sources"
        assert extras.get(name) == [distribution], advice
        assert distribution in extras["all"], advice
        assert sources.get(distribution) == {"workspace": True}, advice
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        assert project["name"] == distribution


def test_a_plugin_is_kept_out_of_the_environment_of_the_core_if_it_says_so(tmp_path: Path):
    own = '[tool.standards-mcp]\nenvironment = "own"\n'
    for name, text in {"large": own, "small": "", "tools": "[tool.mypy]\nstrict = true\n"}.items():
        (tmp_path / "plugins" / name).mkdir(parents=True)
        (tmp_path / "plugins" / name / "pyproject.toml").write_text(text, encoding="utf-8")
    script = tmp_path / "scripts" / "check.py"
    script.parent.mkdir()
    shutil.copy(ROOT / "scripts/check.py", script)
    found = runpy.run_path(str(script))
    assert (set(found["HEAVY"]), set(found["LIGHT"])) == ({"large"}, {"small", "tools"})
    (tmp_path / "plugins/small/pyproject.toml").write_text(own.replace("own", "ours"), "utf-8")
    with pytest.raises(SystemExit, match='environment is "own" or left out'):
        runpy.run_path(str(script))


# The registry


def test_the_registry_is_told_the_version_and_name_of_the_distribution():
    (package,) = SERVER["packages"]
    assert SERVER["version"] == package["version"] == PROJECT["version"]
    assert package["identifier"] == PROJECT["name"]


def test_the_readme_confirms_the_name_in_the_registry():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"mcp-name: (\S+)", readme) == [SERVER["name"]]


def test_the_registry_takes_the_lengths_and_the_form_of_the_name():
    assert 0 < len(SERVER["description"]) <= 100
    assert 0 < len(SERVER["title"]) <= 100
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", SERVER["name"])


def test_the_registry_names_variables_that_are_read_and_their_defaults():
    variables = {each["name"]: each for each in SERVER["packages"][0]["environmentVariables"]}
    assert set(variables) <= VARIABLES
    assert set(PINECONE_VARIABLES.values()) <= set(variables)
    defaults = PineconeCatalogSettings()
    for key, name in PINECONE_VARIABLES.items():
        assert variables[name].get("default") == getattr(defaults, key)
        assert variables[name].get("isSecret", False) == (key == "api_key")


def published_files(folder: Path) -> dict[str, Any]:
    """Return what the published files in a folder say, by their paths."""
    texts = {
        file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8")
        for pattern in (
            "*.toml",
            "*.json",
            "README.md",
            "Dockerfile",
            "plugins/*/*.toml",
            "packaging/mcpb/*.json",
        )
        for file in folder.glob(pattern)
    }
    readers: dict[str, Any] = {".toml": tomllib.loads, ".json": json.loads, ".md": str, "": str}
    return {name: readers[Path(name).suffix](text) for name, text in texts.items()}


@pytest.mark.slow
def test_the_address_of_the_project_is_written_everywhere_by_one_command(tmp_path: Path):
    before = published_files(ROOT)
    for name in (*before, "scripts/set_home.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    command = [sys.executable, str(tmp_path / "scripts/set_home.py")]
    home = "https://github.com/acme/standards"
    for given in ("https://github.com/first/one", f"{home}.git", home):
        subprocess.run([*command, given], check=True, capture_output=True)
    after = published_files(tmp_path)
    assert after["server.json"]["name"] == "io.github.acme/standards-mcp"
    assert after["server.json"]["repository"] == {"url": home, "source": "github"}
    manifest = after["packaging/mcpb/manifest.json"]
    assert manifest["homepage"] == home
    own, *others = manifest["privacy_policies"]
    assert own == f"{home}#privacy-policy"
    assert others == MANIFEST["privacy_policies"]
    assert re.findall(r"mcp-name: (\S+)", after["README.md"]) == ["io.github.acme/standards-mcp"]
    assert 'server.name="io.github.acme/standards-mcp"' in after["Dockerfile"]
    for name, project in after.items():
        if name.endswith("pyproject.toml"):
            assert project["project"].pop("urls")["Source"] == home
            before[name]["project"].pop("urls", None)
            assert project == before[name]
    for wrong in (
        ["http://github.com/a/b"],
        ["https://a:b@github.com/a/b"],
        ["https://git.org/a/b"],
    ):
        assert subprocess.run([*command, *wrong], check=False, capture_output=True).returncode == 2


# The bundle


def test_the_bundle_sets_variables_that_are_read_from_fields_that_it_asks_for():
    variables: dict[str, str] = MANIFEST["server"]["mcp_config"]["env"]
    assert set(variables) <= VARIABLES
    fields = [f"${{user_config.{field}}}" for field in MANIFEST["user_config"]]
    assert list(variables.values()) == fields


def test_no_field_of_the_bundle_has_to_be_filled_in():
    fields: list[dict[str, Any]] = list(MANIFEST["user_config"].values())
    assert not any(field["required"] for field in fields)
    assert [field["title"] for field in fields if field.get("sensitive")] == ["Pinecone API key"]


# The image


def test_the_image_names_the_server_as_the_registry_does():
    (label,) = instructions("LABEL")
    assert label == f'io.modelcontextprotocol.server.name="{SERVER["name"]}"'


def test_the_image_has_plugins_that_are_extras():
    (names,) = re.findall(r'PLUGINS="(.*)"', DOCKERFILE)
    assert set(names.split()) <= set(PROJECT["optional-dependencies"])


def test_the_image_copies_what_is_there_and_not_ignored():
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [rule[1:] for rule in rules if rule.startswith("!")]
    copied = [shlex.split(line)[:-1] for line in instructions("COPY") if "--from" not in line]
    for source in [name for names in copied for name in names]:
        assert (ROOT / source).exists(), source
        assert any(fnmatch.fnmatch(source, rule) for rule in kept), source
    assert {"LICENSE", "NOTICE", PROJECT["readme"]} <= set(kept)


def test_the_image_sets_variables_that_are_read():
    (line,) = instructions("ENV")
    names = {pair.partition("=")[0] for pair in shlex.split(line)}
    assert names - {"PATH"} <= VARIABLES


def test_the_image_does_not_run_as_root():
    assert instructions("USER") == ["10001"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["HEALTHCHECK", "CMD"])
def test_the_commands_of_the_image_work(kind: str):
    (line,) = instructions(kind)
    arguments = json.loads(line[line.index("[") :])
    program, *rest = arguments if kind == "HEALTHCHECK" else ["standards-mcp", *arguments]
    assert [program] == json.loads(instructions("ENTRYPOINT")[0])
    ran = subprocess.run(
        [sys.executable, "-m", "standards_mcp", *rest],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
