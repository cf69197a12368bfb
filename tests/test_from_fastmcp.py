"""The server and the plugin of docs/plugins/from-fastmcp.md, run as they stand there."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult
from support.hosts import MakeHost

from standards_mcp import Plugin
from standards_mcp.server.server import build_server
from standards_mcp.testing import Call, check_plugin

pytestmark = pytest.mark.anyio

PAGE = (Path(__file__).parent.parent / "docs/plugins/from-fastmcp.md").read_text(encoding="utf-8")
SOURCES = dict(re.findall(r"^```python (\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
(TABLE,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
TEXT = "Look up at the moon"
ANSWERED: list[Call] = [
    ("count_words", {"text": TEXT}),
    ("measure_text", {"text": TEXT}),
    ("add_word", {"word": "crater"}),
    ("add_word", {"word": "crater"}),
    ("list_words", {}),
    ("spell_text", {"text": TEXT}),
]
REFUSED: list[Call] = [("measure_text", {"text": " "}), ("add_word", {"word": "x" * 21})]
Progress = list[tuple[float, float | None, str | None]]


def words_plugin() -> type[Plugin[Any]]:
    module = ModuleType("words")
    exec(compile(SOURCES["words"], "words.py", "exec", dont_inherit=True), vars(module))  # noqa: S102
    found = module.WordsPlugin
    assert issubclass(found, Plugin)
    return found


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """Return the file of the server, in a folder where its database will stand."""
    folder = tmp_path / "server"
    folder.mkdir()
    file = folder / "server.py"
    file.write_text(SOURCES["server"], encoding="utf-8")
    return file


@asynccontextmanager
async def every_client(make_host: MakeHost, server: Path) -> AsyncGenerator[dict[str, Client]]:
    """Open a client of the server alone, of the server behind the host, and of the plugin."""
    section = tomllib.loads(TABLE)["servers"]["words"]
    assert len(TABLE.splitlines()) == 4
    args = [
        str(server) if each == "/absolute/path/to/server.py" else each for each in section["args"]
    ]
    section |= {"command": sys.executable, "args": args, "cwd": str(server.parent)}
    alone = StdioServerParameters(command=sys.executable, args=[str(server)], cwd=server.parent)
    behind = make_host(servers={"words": section})
    hosts = {"behind": behind, "plugin": make_host({"words": words_plugin()})}
    sides = {"alone": alone, **{side: build_server(host, "1") for side, host in hosts.items()}}
    async with AsyncExitStack() as stack:
        yield {
            side: await stack.enter_async_context(Client(target)) for side, target in sides.items()
        }


async def call(
    client: Client, name: str, arguments: dict[str, Any]
) -> tuple[CallToolResult, Progress]:
    heard: Progress = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        heard.append((done, total, message))

    return await client.call_tool(name, arguments, progress_callback=hear), heard


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content)


@pytest.mark.slow
async def test_the_server_and_the_plugin_answer_alike(make_host: MakeHost, server: Path):
    async with every_client(make_host, server) as clients:
        answers = {
            side: [await call(client, *each) for each in ANSWERED]
            for side, client in clients.items()
        }
    for (alone, expected), (behind, heard) in zip(answers["alone"], answers["behind"], strict=True):
        assert not alone.is_error, text_of(alone)
        assert heard == expected
        assert (behind.content, behind.structured_content) == (
            alone.content,
            alone.structured_content,
        )
    for (alone, expected), (plugin, heard) in zip(answers["alone"], answers["plugin"], strict=True):
        assert heard == expected
        structured = plugin.structured_content or {"result": text_of(plugin)}
        assert structured == alone.structured_content
    assert len(answers["alone"][-1][1]) == len(TEXT.split())


@pytest.mark.slow
async def test_both_offer_the_same_tools_and_refuse_with_the_same_words(
    make_host: MakeHost, server: Path
):
    async with every_client(make_host, server) as clients:
        for name, arguments in REFUSED:
            alone, behind, plugin = [
                (await call(client, name, arguments))[0] for client in clients.values()
            ]
            assert alone.is_error
            assert text_of(behind) == text_of(alone)
            assert plugin.structured_content["error_type"] == "invalid_input"
            assert plugin.structured_content["message"] in text_of(alone)
        listed = {side: (await client.list_tools()).tools for side, client in clients.items()}
    assert len(listed["alone"]) == 5
    for side in ("behind", "plugin"):
        for ours, theirs in zip(listed[side], listed["alone"], strict=True):
            assert (ours.name, ours.description) == (theirs.name, theirs.description)
            read_only = [bool(tool.annotations.read_only_hint) for tool in (ours, theirs)]
            assert read_only[0] == read_only[1]
            assert set(ours.input_schema["properties"]) == set(theirs.input_schema["properties"])


def test_the_plugin_keeps_the_rules():
    check_plugin(words_plugin(), name="words", calls=ANSWERED)
