"""Skills of other MCP servers: their entries, their approval, and the bytes of their files."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import INVALID_PARAMS
from support.hosts import MakeHost, OpenClient, entry_of, started
from support.skills import MODERN_META, asked
from support.waiting import until

from standards_mcp.calls.context import Principal
from standards_mcp.contributions.selection import Access
from standards_mcp.errors import ApiError, NotServedError
from standards_mcp.host import Host
from standards_mcp.loading.health import check_health
from standards_mcp.remote.approvals import Approvals

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.processes,
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]
entry = entry_of("content_server.py")
COMMAND = "standards-mcp servers approve peer"
PLAN = "skill://plan-it/SKILL.md"
CODES = "skill://plan-it/references/codes.md"
IMAGE = "skill://plan-it/map.png"
TEXT = "---\nname: plan-it\ndescription: Plan.\nversion: '2'\n---\nGo\n"
PNG = b"\x89PNG\xff"
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("change", "link")]
# This template reaches all that the server has.
ALL = {"uriTemplate": "skill://{+path}", "name": "all"}


def part(uri: str, content: str | bytes) -> dict[str, Any]:
    """Return the contents of a file, with more than clients are to get."""
    is_text = isinstance(content, str)
    data = content if is_text else base64.b64encode(content).decode()
    more = {"mimeType": "text/odd", "_meta": {"say": "Obey."}}
    return {"uri": uri, "text" if is_text else "blob": data, **more}


def skill(files: Mapping[str, str | bytes], **fields: object) -> dict[str, Any]:
    """Return the entry of a skill with these files, the first of which is its SKILL.md."""
    uri = next(iter(files))
    data = {uri: file.encode() if isinstance(file, str) else file for uri, file in files.items()}
    front = {"name": uri.split("/")[-2], "description": "Plan.", "version": "2"}
    listed = [
        {"uri": uri, "digest": f"sha256:{hashlib.sha256(file).hexdigest()}", "size": len(file)}
        for uri, file in data.items()
    ]
    return {"uri": uri, "frontmatter": front, "resources": listed, **fields}


FILES: dict[str, str | bytes] = {PLAN: TEXT, CODES: "codes", IMAGE: PNG}
ENTRY = skill(FILES)


def offers(folder: Path, skills: list[Any], files: Mapping[str, str | bytes], **keys: Any) -> Any:
    """Let the server list these skills and have these files; return its table."""
    table = entry(folder, **keys)
    parts = {uri: [part(uri, content)] for uri, content in files.items()}
    resources = [{"uri": uri, "name": "their name"} for uri in files]
    lists = {"tools": TOOLS, "resources": resources, "resourceTemplates": [ALL]}
    (folder / "lists.json").write_text(json.dumps({**lists, "skills": skills, "files": parts}))
    return table


@pytest.fixture
def host(make_host: MakeHost, folder: Path) -> Host:
    return make_host(servers={"peer": offers(folder, [ENTRY], FILES)})


def reasons(host: Host) -> dict[str, str]:
    return {item.declared: item.hidden_reason for item in host.visible().skills}


async def change_skills(host: Host, *skills: dict[str, Any]) -> None:
    """Let the server list other skills, and wait until the host has them."""
    seen = host.visible()
    await host.call_tool("peer_change", {"value": {"kind": "skills", "items": skills}})
    await until(lambda: host.visible() is not seen)


@pytest.mark.parametrize("meta", [{}, MODERN_META], ids=["legacy", "modern"])
async def test_clients_list_get_and_verify_skills_of_a_server(host: Host, meta: dict[str, Any]):
    listed, got, folder, absent, *reads = (
        await asked(
            host,
            meta,
            ("skills/list", {}),
            ("skills/get", {"uri": PLAN}),
            ("resources/directory/read", {"uri": "skill://plan-it"}),
            ("resources/read", {"uri": "skill://plan-it/absent.md"}),
            *(("resources/read", {"uri": uri}) for uri in FILES),
        )
    )[-7:]
    assert listed["skills"] == [ENTRY] == [got["skill"]]
    assert [(each["uri"], each["name"]) for each in folder["resources"]] == [
        (PLAN, "plan-it"),
        (IMAGE, "plan-it/map.png"),
        ("skill://plan-it/references", "references"),
    ]
    assert absent["code"] == INVALID_PARAMS, "a file that no entry lists, though a template fits"
    assert [read["contents"] for read in reads] == [
        [{"uri": PLAN, "mimeType": "text/markdown", "text": TEXT}],
        [{"uri": CODES, "mimeType": "text/markdown", "text": "codes"}],
        [{"uri": IMAGE, "mimeType": "image/png", "blob": base64.b64encode(PNG).decode()}],
    ]


async def test_each_file_is_one_resource_with_the_names_of_the_entry(
    host: Host, open_newest: OpenClient
):
    async with open_newest(host) as client:
        resources = (await client.list_resources()).resources
        assert [(each.uri, each.name, each.description) for each in resources] == [
            (PLAN, "plan-it", "Plan."),
            (CODES, "plan-it/references/codes.md", None),
            (IMAGE, "plan-it/map.png", None),
        ]
        health = (await check_health(host.manager))["peer"]
        assert (health.status, health.message) == ("ok", "2 tools, 1 skills, 4 resources")


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"skills": {"disable": ["peer.*"]}}, "[skills] disable has 'peer.*'"),
        ({"skills": {"enable": [CODES]}}, "[skills] enable has no pattern for it"),
        (
            {"profile": "none", "profiles": {"none": {"plugins": ["own"]}}},
            "[profiles.none] plugins has no pattern for 'peer'",
        ),
    ],
)
async def test_rules_and_profiles_hold_for_skills_and_their_files(
    make_host: MakeHost, folder: Path, settings: dict[str, Any], reason: str
):
    host = make_host(servers={"peer": offers(folder, [ENTRY], FILES)}, **settings)
    async with started(host):
        assert reasons(host) == {"peer.plan-it": reason}
        with pytest.raises(NotServedError):
            await host.content.read_resource(CODES)


async def test_a_caller_without_the_skill_gets_no_word_of_it(host: Host):
    caller = Principal("ann", Access(names=("peer.all", "peer.linked")))
    listed, got, read = (
        await asked(
            host,
            MODERN_META,
            ("skills/list", {}),
            ("skills/get", {"uri": PLAN}),
            ("resources/read", {"uri": PLAN}),
            caller=caller,
        )
    )[-3:]
    assert listed["skills"] == []
    assert {got["code"], read["code"]} == {INVALID_PARAMS}


async def test_a_changed_skill_is_not_served_until_it_is_approved(
    host: Host, folder: Path, open_newest: OpenClient
):
    async with open_newest(host) as client:
        await client.list_tools()
        assert reasons(host) == {"peer.plan-it": ""}
        changed = {**FILES, CODES: "other"}
        offers(folder, [ENTRY], changed)
        await change_skills(host, skill(changed), skill({"skill://new/SKILL.md": ""}))
        withheld = reasons(host)
        assert withheld["peer.plan-it"].startswith("its definition changed since")
        assert withheld["peer.new"].startswith("it is new since the server was approved")
        assert all(COMMAND in reason for reason in withheld.values())
        assert (await client.list_resources()).resources == []
        health = (await check_health(host.manager))["peer"]
        assert "skill 'skill://plan-it/SKILL.md' changed, skill 'skill://new" in health.message
        await client.call_tool("peer_link", {"value": CODES})
        for uri in FILES:
            with pytest.raises(MCPError, match=COMMAND):
                await client.read_resource(uri)
        server = host.manager.records["peer"].plugin
        (file,) = (host.state_dir / "plugins" / "peer").glob("approved-*.json")
        Approvals("peer", file).approve(server.approvals.changes)
        await until(lambda: not any(reasons(host).values()))
        (content,) = (await client.read_resource(CODES)).contents
        assert content.text == "other"


async def test_each_part_of_an_entry_needs_approval(host: Host):
    async with started(host):
        for fields in (
            {"frontmatter": {**ENTRY["frontmatter"], "version": "3"}},
            {"resources": ENTRY["resources"][:2]},
            {"resources": "dynamic"},
        ):
            await change_skills(host, ENTRY | fields)
            assert reasons(host)["peer.plan-it"], fields
            await change_skills(host, ENTRY | {"more": 1})
            assert not reasons(host)["peer.plan-it"]


BYTES = base64.b64encode(b"codes").decode()


@pytest.mark.parametrize(
    ("parts", "is_served"),
    [
        ([{"uri": CODES, "blob": BYTES}], True),
        ([{"uri": CODES, "text": "codes", "blob": base64.b64encode(b"other").decode()}], True),
        ([{"uri": CODES, "text": "other"}], False),
        ([{"uri": CODES, "text": "codes "}], False),
        ([{"uri": CODES, "text": "other", "blob": BYTES}], False),
        ([{"uri": CODES, "blob": "co-des"}], False),
        ([{"uri": CODES, "text": "other"}, {"uri": CODES, "text": "codes"}], True),
        ([], False),
    ],
)
async def test_only_listed_bytes_are_served(
    host: Host, folder: Path, parts: list[Any], is_served: bool
):
    async with started(host):
        lists = json.loads((folder / "lists.json").read_text())
        lists["files"][CODES] = parts  # without any, the server answers with two others
        (folder / "lists.json").write_text(json.dumps(lists))
        if is_served:
            assert (await host.content.read_resource(CODES)).data == "codes"
        else:
            with pytest.raises(ApiError, match=r"codes.md is not as its server listed it\. Try"):
                await host.content.read_resource(CODES)


async def test_bytes_that_changed_without_a_word_let_the_host_list_the_skills_again(
    host: Host, folder: Path
):
    async with started(host):
        changed = {**FILES, CODES: "other"}
        offers(folder, [skill(changed)], changed)
        assert reasons(host) == {"peer.plan-it": ""}
        with pytest.raises(ApiError, match="is not as its server listed it"):
            await host.content.read_resource(CODES)
        await until(lambda: COMMAND in reasons(host)["peer.plan-it"])


async def test_a_skill_that_changed_while_no_host_ran_is_not_read(
    make_host: MakeHost, folder: Path
):
    servers = {"peer": offers(folder, [ENTRY], FILES)}
    async with started(make_host(servers=servers)):
        pass
    changed = {**FILES, CODES: "other"}
    offers(folder, [skill(changed)], changed)
    async with started(make_host(servers=servers)) as host:
        assert reasons(host) == {"peer.plan-it": ""}, "as the last run knew it"
        with pytest.raises(ApiError, match="is not as its server listed it"):
            await host.content.read_resource(CODES)
        assert COMMAND in reasons(host)["peer.plan-it"]


async def test_with_always_a_changed_skill_is_served_once_it_is_listed(
    make_host: MakeHost, folder: Path
):
    table = offers(folder, [ENTRY], FILES, approve="always")
    async with started(make_host(servers={"peer": table})) as host:
        changed = {**FILES, CODES: "other"}
        offers(folder, [ENTRY], changed)
        with pytest.raises(ApiError):
            await host.content.read_resource(CODES)
        await change_skills(host, skill(changed))
        assert (await host.content.read_resource(CODES)).data == "other"


ONE = skill({PLAN: TEXT})
FILE = ONE["resources"][0]
FRONT = ONE["frontmatter"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"resources": "dynamic"}, "its files are dynamic"),
        ({"resources": None}, "resources: Input should be a valid list"),
        ({"resources": []}, "its SKILL.md is not listed"),
        ({"resources": [FILE, FILE]}, "each once"),
        ({"resources": [FILE, {**FILE, "uri": "skill://plan/x"}]}, "not files of its folder"),
        ({"resources": [FILE] * 513}, "at most 512 items"),
        *(
            ({"resources": [FILE, {**FILE, "uri": f"skill://plan-it/{path}"}]}, "not plain paths")
            for path in ("../plan.md", "%2e%2e/plan.md", "..\\plan.md", "a//b.md", "\x1b[2J.md")
        ),
        *(
            ({"uri": uri, "resources": [{**FILE, "uri": uri}]}, "not plain paths")
            for uri in ("/plan-it/SKILL.md", "file:///plan-it/SKILL.md", "ui://plan-it/SKILL.md")
        ),
        ({"resources": [{**FILE, "size": (16 << 20) + 1}]}, "it is too large"),
        ({"resources": [{**FILE, "size": -1}]}, "resources.0.size"),
        ({"resources": [{**FILE, "size": True}]}, "resources.0.size"),
        ({"resources": [{**FILE, "digest": FILE["digest"].upper()}]}, "resources.0.digest"),
        ({"resources": [{**FILE, "digest": FILE["digest"] + "\n"}]}, "resources.0.digest"),
        ({"uri": "skill://other/SKILL.md"}, "its URI has another name"),
        ({"uri": "skill://plan-it"}, "its URI has another name"),
        ({"uri": "SKILL.md"}, "its URI has another name"),
        ({"uri": ""}, "its URI has another name"),
        ({"uri": None}, "uri: Input should be a valid string"),
        ({"frontmatter": None}, "frontmatter: Input should be a valid dictionary"),
        ({"frontmatter": {"name": "plan-it"}}, "frontmatter.description: Field required"),
        ({"frontmatter": {**FRONT, "name": "Plan"}}, "frontmatter.name"),
        ({"frontmatter": {**FRONT, "description": "\u202e"}}, "control characters"),
        ({"frontmatter": {**FRONT, "description": "\u001b[2J"}}, "control characters"),
    ],
    ids=str,
)
async def test_an_entry_that_breaks_a_rule_is_withheld_alone_with_the_reason(
    make_host: MakeHost, folder: Path, fields: dict[str, Any], reason: str
):
    uri = "skill://help-me/SKILL.md"
    fine = skill({uri: "help"})
    files = {uri: "help", PLAN: TEXT, "demo://one": "one"}
    host = make_host(servers={"peer": offers(folder, [ONE | fields, fine], files)})
    async with started(host):
        wrong, other = host.visible().skills
        assert wrong.hidden_reason.startswith("its entry breaks a rule: ")
        assert reason in wrong.hidden_reason
        assert (other.declared, other.hidden_reason) == ("peer.help-me", "")
        assert (await host.content.read_resource(uri)).data == "help"
        assert (await host.content.read_resource("demo://one")).parts
        json.dumps([item.definition for item in host.visible().skills])


async def test_a_server_may_use_another_scheme_and_nest_its_skills(
    make_host: MakeHost, folder: Path
):
    outer, inner = "git://org/plan-it/SKILL.md", "git://org/plan-it/deep/plan-it/SKILL.md"
    files: dict[str, str | bytes] = {outer: "outer", inner: "inner"}
    skills = [skill(files), skill({inner: "inner"})]
    host = make_host(servers={"peer": offers(folder, skills, files)})
    *_, listed, root, deep = await asked(
        host,
        {},
        ("skills/list", {}),
        ("resources/directory/read", {"uri": "git://org/plan-it"}),
        ("resources/directory/read", {"uri": "git://org/plan-it/deep/plan-it"}),
    )
    assert listed["skills"] == skills
    assert [each["name"] for each in root["resources"]] == ["plan-it", "deep"]
    assert [each["uri"] for each in deep["resources"]] == [inner]
    assert list(reasons(host)) == ["peer.org_plan-it", "peer.org_plan-it_deep_plan-it"]
    async with started(host):
        for uri, text in files.items():
            assert (await host.content.read_resource(uri)).data == text


async def test_a_skill_that_is_listed_twice_counts_once_as_first_listed(
    make_host: MakeHost, folder: Path
):
    second = skill({PLAN: "Obey.", CODES: "codes"})
    host = make_host(servers={"peer": offers(folder, [ENTRY, second], FILES)})
    async with started(host):
        first, again = host.visible().skills
        assert (first.hidden_reason, first.entry["resources"]) == ("", ENTRY["resources"])
        assert again.hidden_reason == "it is listed twice under this name"
        assert (await host.content.read_resource(PLAN)).data == TEXT


async def test_a_uri_belongs_to_the_first_server_that_lists_it(
    make_host: MakeHost, folder: Path, tmp_path: Path
):
    other = {PLAN: "other"}
    servers = {
        "peer": offers(folder, [ENTRY], FILES),
        "second": offers(tmp_path / "second", [skill(other)], other),
    }
    async with started(make_host(servers=servers)) as host:
        first, second = host.visible().skills
        assert (first.plugin, first.hidden_reason) == ("peer", "")
        assert "already belongs to plugin 'peer'; a skill cannot be renamed" in second.hidden_reason
        assert (await host.content.read_resource(PLAN)).data == TEXT
        assert [item.published for item in host.visible().resources].count(PLAN) == 2


async def test_a_server_without_the_extension_has_its_files_as_plain_resources(
    make_host: MakeHost, folder: Path
):
    table = offers(folder, [ENTRY], FILES)
    lists = json.loads((folder / "lists.json").read_text())
    del lists["skills"]
    (folder / "lists.json").write_text(json.dumps(lists))
    async with started(make_host(servers={"peer": table})) as host:
        assert host.visible().skills == ()
        assert (await host.content.read_resource(PLAN)).parts == (part(PLAN, TEXT),)
