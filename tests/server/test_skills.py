"""The skills extension on the wire, in both protocol generations, local and isolated."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.caching import CacheMode
from mcp_types import INVALID_PARAMS, ResourceListChangedNotification
from support.hosts import Install, MakeHost, OpenClient
from support.skills import MODERN_META, PREFIX, asked
from support.waiting import PAUSE, WAIT, until

from standards_mcp import Plugin, Skill, hookimpl
from standards_mcp.calls.context import Principal
from standards_mcp.config.loading import LoadedSettings
from standards_mcp.config.models.settings import Settings
from standards_mcp.contributions.selection import Access
from standards_mcp.host import Host
from standards_mcp.loading.discovery import installed_plugins
from standards_mcp.server.handlers import MAX_PAGE_BYTES

pytestmark = [pytest.mark.anyio, pytest.mark.processes]

PLUGIN = '''
    from pathlib import Path
    from standards_mcp import Plugin, PluginSettings, Skill, hookimpl, tool

    class AcmeSettings(PluginSettings):
        folder: Path = Path()

    class AcmePlugin(Plugin[AcmeSettings]):
        settings_type = AcmeSettings

        @tool
        def rewrite(self, text: str) -> str:
            """Change a file of the skill."""
            (self.settings.folder / "plan-it" / "references" / "codes.md").write_text(text)
            self.context.contributions_changed()
            return "done"

        @hookimpl
        def register_skills(self):
            return [Skill(source=self.settings.folder / "plan-it", needs=("rewrite",)),
                    Skill(source="---\\nname: help-me\\ndescription: Help.\\n---\\nHelp.")]
'''


def fill(folder: Path) -> None:
    skill = folder / "plan-it"
    (skill / "references" / "eu").mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: plan-it\ndescription: Plan.\nlicense: MIT\n---\nGo\n"
    )
    (skill / "references" / "codes.md").write_text("codes")
    (skill / "references" / "eu" / "map.png").write_bytes(b"\x89PNG\xff")


@pytest.fixture(params=["local", "isolated"])
def host(request: pytest.FixtureRequest, install: Install, tmp_path: Path) -> Host:
    install("acme", PLUGIN)
    fill(tmp_path)
    table = {"isolate": request.param == "isolated", "folder": str(tmp_path)}
    settings = Settings(state_dir=tmp_path / "state", plugins={"acme": table})
    plugins = [info for info in installed_plugins() if info.name == "acme"]
    host = Host(LoadedSettings(settings, None), installed=plugins)
    host.load()
    return host


@pytest.fixture(params=["legacy", "modern"])
def meta(request: pytest.FixtureRequest) -> dict[str, Any]:
    return MODERN_META if request.param == "modern" else {}


async def test_both_generations_see_that_the_server_has_skills(host: Host, meta: dict[str, Any]):
    first = ("server/discover", {}) if meta else ("ping", {})
    introduction, *_ = await asked(host, meta, first)
    assert introduction["capabilities"]["extensions"] == {
        f"{PREFIX}/skills": {"directoryRead": True}
    }
    assert "resources" in introduction["capabilities"]


async def test_a_client_lists_gets_and_verifies_skills(host: Host, meta: dict[str, Any]):
    uri = "skill://plan-it/SKILL.md"
    *_, listed, got = await asked(host, meta, ("skills/list", {}), ("skills/get", {"uri": uri}))
    (plan, help_me) = listed["skills"]
    assert plan["uri"] == uri
    assert plan["frontmatter"] == {"name": "plan-it", "description": "Plan.", "license": "MIT"}
    assert help_me["uri"] == "skill://help-me/SKILL.md"
    assert got["skill"] == plan
    hints = {"resultType": "complete", "ttlMs": 300_000, "cacheScope": "public"} if meta else {}
    for result, key in ((listed, "skills"), (got, "skill")):
        assert {name: result[name] for name in result if name not in {key, "_meta"}} == hints
    files = [each["uri"] for each in plan["resources"]]
    reads = await asked(host, meta, *(("resources/read", {"uri": uri}) for uri in files))
    for file, read in zip(plan["resources"], reads[-len(files) :], strict=True):
        (part,) = read["contents"]
        data = base64.b64decode(part["blob"]) if "blob" in part else part["text"].encode()
        assert file["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        assert file["size"] == len(data)
        assert {key: read[key] for key in read if key not in {"contents", "_meta"}} == hints


async def test_files_are_resources_and_folders_are_listed_level_by_level(
    host: Host, meta: dict[str, Any]
):
    root = "skill://plan-it"
    folders = [root, f"{root}/references", f"{root}/references/eu"]
    reads = [("resources/directory/read", {"uri": uri}) for uri in folders]
    answers = await asked(host, meta, ("resources/list", {}), *reads)
    listed, *found = [answer["resources"] for answer in answers if "resources" in answer]
    by_uri = {each["uri"]: each for each in listed}
    main = by_uri[f"{root}/SKILL.md"]
    assert (main["name"], main["mimeType"]) == ("plan-it", "text/markdown")
    assert main["description"] == "Plan."
    names = [[(each["name"], each["mimeType"]) for each in level] for level in found]
    assert names == [
        [("plan-it", "text/markdown"), ("references", "inode/directory")],
        [("plan-it/references/codes.md", "text/markdown"), ("eu", "inode/directory")],
        [("plan-it/references/eu/map.png", "image/png")],
    ]
    files = [each for level in found for each in level if each["mimeType"] != "inode/directory"]
    assert files == [by_uri[each["uri"]] for each in files]


@pytest.mark.parametrize(
    ("method", "uri"),
    [
        ("skills/get", "skill://plan-it"),
        ("skills/get", "skill://plan-it/references/codes.md"),
        ("skills/get", "skill://absent/SKILL.md"),
        ("resources/directory/read", "skill://plan-it/SKILL.md"),
        ("resources/directory/read", "skill://plan-it/"),
        ("resources/directory/read", "skill://plan-it/absent"),
        ("resources/directory/read", "skill://plan-it/../plan-it"),
        ("resources/directory/read", "skill://plan"),
        ("resources/directory/read", "skill:/"),
        ("resources/directory/read", ""),
        ("resources/read", "skill://plan-it/references"),
        ("resources/read", "skill://plan-it/references/../SKILL.md"),
        ("resources/read", "skill://plan-it/%2e%2e/SKILL.md"),
    ],
)
@pytest.mark.parametrize("host", ["local"], indirect=True)
async def test_an_unknown_uri_is_an_invalid_parameter(
    host: Host, meta: dict[str, Any], method: str, uri: str
):
    *_, error = await asked(host, meta, (method, {"uri": uri}))
    assert error["code"] == INVALID_PARAMS


async def test_a_restricted_caller_gets_no_word_of_other_skills(host: Host, meta: dict[str, Any]):
    caller = Principal("ann", Access(names=("help-*",)))
    get = ("skills/get", {"uri": "skill://plan-it/SKILL.md"})
    read = ("resources/directory/read", {"uri": "skill://plan-it"})
    answers = await asked(host, meta, ("skills/list", {}), get, read, caller=caller)
    listed, no_skill, no_folder = answers[-3:]
    assert [each["frontmatter"]["name"] for each in listed["skills"]] == ["help-me"]
    assert {no_skill["code"], no_folder["code"]} == {INVALID_PARAMS}


async def test_large_entries_are_listed_page_by_page(make_host: MakeHost, meta: dict[str, Any]):
    class Many(Plugin):
        @hookimpl
        def register_skills(self):
            note = f"metadata:\n  note: {'x' * (MAX_PAGE_BYTES // 2)}"
            return [
                Skill(source=f"---\nname: s{number}\ndescription: A skill.\n{note}\n---\n")
                for number in range(2)
            ]

    host = make_host({"many": Many})
    *_, first = await asked(host, meta, ("skills/list", {}))
    *_, second, wrong = await asked(
        host,
        meta,
        ("skills/list", {"cursor": first["nextCursor"]}),
        ("skills/list", {"cursor": "x"}),
    )
    assert [each["uri"] for each in first["skills"]] == ["skill://s0/SKILL.md"]
    assert [each["uri"] for each in second["skills"]] == ["skill://s1/SKILL.md"]
    assert "nextCursor" not in second
    assert wrong["code"] == INVALID_PARAMS


async def until_same(read: Callable[[], Awaitable[str]], listed: Callable[[], str]) -> None:
    with anyio.fail_after(WAIT):
        while await read() != listed():  # noqa: ASYNC110  - reading is what is tested
            await anyio.sleep(PAUSE)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
async def test_an_entry_and_its_bytes_change_together_and_clients_are_notified(
    host: Host, open_client: OpenClient
):
    heard: list[object] = []

    async def hear(message: object) -> None:
        heard.extend([message] * isinstance(message, ResourceListChangedNotification))

    uri = "skill://plan-it/references/codes.md"

    def listed() -> str:
        (item,) = [each for each in host.visible().skills if each.declared == "plan-it"]
        return next(each["digest"] for each in item.entry["resources"] if each["uri"] == uri)

    async def read(cache_mode: CacheMode = "bypass") -> str:
        (part,) = (await client.read_resource(uri, cache_mode=cache_mode)).contents
        return f"sha256:{hashlib.sha256(part.text.encode()).hexdigest()}"

    async def listen(client: Client) -> None:
        # The client keeps what it has read until it hears of a change.
        async with client.listen(resources_list_changed=True, resource_subscriptions=[uri]):
            await anyio.sleep_forever()

    async with (
        open_client(host, message_handler=hear) as client,
        anyio.create_task_group() as group,
    ):
        if client.protocol_version >= "2026":
            group.start_soon(listen, client)
        await host.manager.wait_started()
        await anyio.sleep(0.5)  # the start itself is announced, too
        for text in ("other", "again"):  # as long as the text before
            before, heard[:] = listed(), []
            assert await read("use") == before
            await client.call_tool("rewrite", {"text": text})
            while (entry := listed()) == before:
                content = await read()
                assert entry != listed() or content == entry
            assert await read() == listed() == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
            await until(lambda: heard)
            await until_same(partial(read, "use"), listed)  # the client forgets what it has read
        group.cancel_scope.cancel()
