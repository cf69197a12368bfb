"""Skills of plugins: what is read at registration, and to whom it is served."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support.hosts import MakeHost

from standards_mcp import Plugin, PluginError, Resource, Skill, Tool, hookimpl, skill, tool
from standards_mcp.calls.context import HostContext, Principal
from standards_mcp.contributions.selection import EVERYTHING, Access, gained, visible
from standards_mcp.contributions.skills import MAX_BYTES, MAX_FILES, read_skill
from standards_mcp.errors import NotServedError
from standards_mcp.host import Host

pytestmark = pytest.mark.anyio


def text_of(name: str, body: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: Does {name} step by step.\n---\n{body}\n"


def folder_of(parent: Path, name: str, **files: bytes | str) -> Path:
    folder = parent / name
    for path, data in {"SKILL.md": text_of(name), **files}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
    return folder


def plugin_with(*skills: Any, **tools: str) -> type[Plugin]:
    class Made(Plugin):
        @hookimpl
        def register_tools(self):
            return [
                Tool(name=name, description="Finds things.", function=lambda: "found")
                for name in tools.values()
            ]

        @hookimpl
        def register_skills(self):
            return skills

    return Made


def served(host: Host, access: Access = EVERYTHING) -> list[str]:
    return [item.declared for item in visible(host.select(access).skills)]


def uris(host: Host, access: Access = EVERYTHING) -> list[str]:
    return [item.resource.uri for item in visible(host.select(access).resources)]


def reasons(host: Host) -> dict[str, str]:
    return {item.declared: item.hidden_reason for item in host.visible().skills}


async def test_a_folder_is_served_with_all_of_its_files(make_host: MakeHost, tmp_path: Path):
    files = {
        "references/eu/a b.md": "Grüße\r\n",
        "references/codes.csv": "a,b\n",
        "data.bin": b"\x00\xff",
        "LICENSE": "Free.",
        ".hidden": "no",
        "scripts/__pycache__/run.pyc": b"no",
        "scripts/run.py": "print()",
    }
    host = make_host({"acme": plugin_with(Skill(source=folder_of(tmp_path, "plan-it", **files)))})
    (item,) = host.visible().skills
    assert item.definition["uri"] == "skill://plan-it/SKILL.md"
    assert item.definition["frontmatter"] == {
        "name": "plan-it",
        "description": "Does plan-it step by step.",
    }
    expected = {
        "SKILL.md": "text/markdown",
        "LICENSE": "text/plain",
        "data.bin": "application/octet-stream",
        "references/codes.csv": "text/csv",
        "references/eu/a%20b.md": "text/markdown",
        "scripts/run.py": "text/x-python",
    }
    listed = {
        each["uri"].removeprefix("skill://plan-it/"): each for each in item.definition["resources"]
    }
    assert list(listed) == list(expected)
    resources = {each.resource.uri: each.resource.mime_type for each in host.visible().resources}
    assert resources == {f"skill://plan-it/{path}": kind for path, kind in expected.items()}
    for each in listed.values():
        data = (await host.content.read_resource(each["uri"])).data
        data = data.encode() if isinstance(data, str) else data
        assert each["size"] == len(data)
        assert each["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"


def test_a_text_a_function_and_a_method_declare_skills_too(make_host: MakeHost):
    @skill
    def function() -> str:
        return text_of("of-function")

    class Made(Plugin):
        @skill(needs=("go",))
        def method(self) -> str:
            return text_of(f"of-{self.context.name}")

        @tool
        def go(self) -> str:
            """Go there."""
            return "gone"

        @hookimpl
        def register_skills(self):
            return [Skill(source=text_of("of-text")), function]

    host = make_host({"acme": Made})
    assert served(host) == ["of-acme", "of-text", "of-function"]
    assert host.visible().skills[0].needs == ("go",)


def test_a_skill_in_a_zip_file_is_read_and_an_odd_name_in_it_is_refused(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr("plan-it/SKILL.md", text_of("plan-it"))
        file.writestr("plan-it/more/x.md", "x")
        file.writestr("odd/SKILL.md", text_of("odd"))
        file.writestr("odd/a\\..\\b", "x")
    root = zipfile.Path(tmp_path / "a.zip")
    item = read_skill("acme", Skill(source=root / "plan-it"))
    assert list(item.contents) == ["SKILL.md", "more/x.md"]
    with pytest.raises(PluginError, match="not a name on every system"):
        read_skill("acme", Skill(source=root / "odd"))


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("# No front matter", "must begin with front matter"),
        (lambda: text_of("Nope"), "its name"),
        ("half \ud800", "surrogates not allowed"),
    ],
)
def test_a_text_that_breaks_a_rule_is_refused(source: Any, reason: str):
    with pytest.raises(PluginError, match=reason):
        read_skill("acme", Skill(source=source))


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"SKILL.md": text_of("other")}, "they must agree"),
        ({"SKILL.md": b"---\nname: plan-it\ndescription: \xff\n---\n"}, "utf-8"),
        ({"big": b"x" * MAX_BYTES}, "16 MiB"),
        ({str(number): "" for number in range(MAX_FILES)}, "512 files"),
    ],
    ids=["name", "encoding", "bytes", "files"],
)
def test_a_folder_that_breaks_a_rule_is_refused(files: dict[str, Any], reason: str, tmp_path: Path):
    with pytest.raises(PluginError, match=f"plan-it.*{reason}"):
        read_skill("acme", Skill(source=folder_of(tmp_path, "plan-it", **files)))


def test_the_largest_skill_is_served(tmp_path: Path):
    most = MAX_BYTES - len(text_of("plan-it"))
    files: dict[str, Any] = {f"f{number}": "" for number in range(MAX_FILES - 2)}
    item = read_skill(
        "acme", Skill(source=folder_of(tmp_path, "plan-it", **files, big=b"x" * most))
    )
    assert len(item.entry["resources"]) == MAX_FILES
    assert sum(each["size"] for each in item.entry["resources"]) == MAX_BYTES


@pytest.mark.parametrize("place", ["plan-it", "plan-it/link", "plan-it/SKILL.md"])
def test_a_symbolic_link_is_refused(place: str, tmp_path: Path):
    secret = folder_of(tmp_path / "elsewhere", "plan-it")
    if place != "plan-it":
        folder_of(tmp_path, "plan-it", x="x")
    target = tmp_path / place
    target.unlink(missing_ok=True)
    target.symlink_to(secret / "SKILL.md" if place.endswith("md") else secret)
    with pytest.raises(PluginError, match="is a link"):
        read_skill("acme", Skill(source=tmp_path / "plan-it"))


def test_a_missing_folder_and_a_folder_without_the_file_are_refused(tmp_path: Path):
    with pytest.raises(PluginError, match="neither a file nor a folder"):
        read_skill("acme", Skill(source=tmp_path / "absent"))
    (tmp_path / "plan-it").mkdir()
    with pytest.raises(PluginError, match=r"no file SKILL\.md"):
        read_skill("acme", Skill(source=tmp_path / "plan-it"))


@pytest.mark.parametrize("item", [text_of("plan-it"), 5, lambda: text_of("plan-it")])
def test_what_is_no_skill_is_refused(item: Any):
    with pytest.raises(PluginError, match=r"return Skill\(source=\.\.\.\)"):
        read_skill("acme", item)


@pytest.mark.parametrize("needs", ["find", ("find", 5), ([],)])
def test_needs_is_a_list_of_names(needs: Any):
    with pytest.raises(PluginError, match="its needs must be a list of names of tools"):
        read_skill("acme", Skill(source=text_of("a"), needs=needs))


@pytest.mark.parametrize("first", ["skill", "resource"])
def test_a_name_and_a_uri_have_one_owner(first: str, make_host: MakeHost):
    resource = Resource(
        uri="skill://plan-it/SKILL.md", name="mine", description="Mine.", function=lambda: ""
    )

    class Claims(Plugin):
        @hookimpl
        def register_resources(self):
            return [resource]

    own = plugin_with(Skill(source=text_of("plan-it")))
    plugins = {"a": own, "b": Claims} if first == "skill" else {"a": Claims, "b": own}
    records = make_host(plugins).manager.records
    assert "already belongs to plugin 'a'" in records["b"].reason
    records = make_host({"a": own, "b": own}).manager.records
    assert records["b"].reason == "skill 'plan-it' already belongs to plugin 'a'"


def test_rules_profiles_and_scopes_select_skills(make_host: MakeHost):
    both = plugin_with(Skill(source=text_of("plan-it")), Skill(source=text_of("check-it")))
    host = make_host({"acme": both}, skills={"disable": ["check-*"]})
    assert served(host) == ["plan-it"]
    assert uris(host) == ["skill://plan-it/SKILL.md"]
    assert reasons(host)["check-it"] == "[skills] disable has 'check-*'"
    profiles = {"few": {"skills": {"enable": ["check-it"]}}, "none": {"plugins": []}}
    host = make_host({"acme": both}, profiles=profiles, profile="few")
    assert served(host) == ["check-it"]
    assert reasons(host)["plan-it"] == "[profiles.few.skills] enable has no pattern for it"
    assert not served(host, Access(profiles=("none",)))
    assert served(host, Access(names=("check-*",))) == ["check-it"]
    assert not uris(host, Access(names=("other",)))
    by_uri = make_host({"acme": both}, skills={"enable": ["skill://plan-it/*"]})
    assert served(by_uri) == ["plan-it"]


async def test_a_file_of_a_hidden_skill_cannot_be_read(make_host: MakeHost):
    host = make_host(
        {"acme": plugin_with(Skill(source=text_of("plan-it")))}, skills={"disable": ["*"]}
    )
    with pytest.raises(NotServedError, match="not served here"):
        await host.content.read_resource("skill://plan-it/SKILL.md")
    stranger = HostContext(Principal("ann", Access(names=("x",))))
    with pytest.raises(NotServedError, match="Unknown resource"):
        await host.content.read_resource("skill://plan-it/SKILL.md", stranger)


def test_a_skill_is_served_while_its_tools_are_served_under_their_names(make_host: MakeHost):
    plugin = plugin_with(Skill(source=text_of("plan-it"), needs=("acme.find",)), one="acme.find")
    assert served(make_host({"acme": plugin})) == ["plan-it"]
    assert served(make_host({"acme": plugin}, tool_names="declared")) == ["plan-it"]
    missing = {"plan-it": "it needs the tool 'acme.find', which is not served"}
    for tools in ({"disable": ["acme.find"]}, {"overrides": {"acme.find": {"name": "seek"}}}):
        host = make_host({"acme": plugin}, tools=tools)
        assert reasons(host) == missing
        assert not uris(host)


async def test_limits_of_resources_hold_for_files_and_rules_of_resources_do_not(
    make_host: MakeHost,
):
    plugin = plugin_with(Skill(source=text_of("plan-it", "x" * 4000)))
    rules = {"enable": ["other"], "max_output_tokens": 100}
    host = make_host({"acme": plugin}, resources=rules)
    assert served(host) == ["plan-it"]
    with pytest.raises(Exception, match="more than the 100 allowed"):
        await host.content.read_resource("skill://plan-it/SKILL.md")


def test_a_change_of_the_settings_names_the_skills_that_it_exposes(make_host: MakeHost):
    host = make_host(
        {"acme": plugin_with(Skill(source=text_of("plan-it")))}, skills={"disable": ["plan-it"]}
    )
    after = host.settings.model_copy(update={"skills": type(host.settings.skills)()})
    found = gained(host.manager.contributions, host.settings, after)
    assert found == ["the skill skill://plan-it/SKILL.md"]


def test_a_pattern_that_matches_no_skill_is_a_warning(make_host: MakeHost):
    plugin = plugin_with(Skill(source=text_of("plan-it")))
    host = make_host({"acme": plugin}, skills={"disable": ["plan-is"]})
    (warning,) = host.warnings()
    assert "[skills] disable" in warning
    assert "plan-it" in warning
