"""Compare public MCP servers that need no network: alone, and behind the host.

usage: python benchmarks/public_servers.py [--npm FOLDER] [NAME ...]

Each server is started once by the SDK's client, and once by the host, with the same client in
front of it. A row says whether both list the same tools (schemas, descriptions, hints), prompts,
resources and templates, and whether all that is asked for here comes back the same: the calls
(content, structure and error flag), every prompt, its completions, and every resource. Arguments
that do not fit are refused by the host itself, in its own words; that both refuse them counts. The
times are for one call, the median of 20.

The servers of npm are looked for in FOLDER/node_modules (`npm install` them there), those of PyPI
on the path (`uv tool install`, with `--with 'mcp<2'` for sqlite and calculator); what is not there
is left out.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import PromptReference, ResourceTemplateReference

CALLS = 20
# What differs from one call to the next, whoever makes it.
VOLATILE = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+-]+Z?|\b\d+:\d\d:\d\d [AP]M")


@dataclass(frozen=True)
class Server:
    """A public server and the calls that are made to it; ``{folder}`` is an empty folder."""

    name: str
    package: str
    program: str
    args: tuple[str, ...] = ()
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


SERVERS = (
    Server(
        "everything",
        "npm @modelcontextprotocol/server-everything",
        "mcp-server-everything",
        ("stdio",),
        (
            ("echo", {"message": "number line"}),
            ("get-sum", {"a": 2, "b": 3}),
            ("get-sum", {"a": "two"}),
            ("get-tiny-image", {}),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("get-resource-links", {"count": 3}),
            ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
            ("get-structured-content", {"location": "Chicago"}),
        ),
    ),
    Server(
        "filesystem",
        "npm @modelcontextprotocol/server-filesystem",
        "mcp-server-filesystem",
        ("{folder}",),
        (
            ("write_file", {"path": "{folder}/a.txt", "content": "one\ntwo\n"}),
            ("read_text_file", {"path": "{folder}/a.txt"}),
            ("list_directory", {"path": "{folder}"}),
            ("read_text_file", {"path": "/etc/hostname"}),
        ),
    ),
    Server(
        "memory",
        "npm @modelcontextprotocol/server-memory",
        "mcp-server-memory",
        (),
        (
            (
                "create_entities",
                {"entities": [{"name": "a", "entityType": "t", "observations": ["x"]}]},
            ),
            ("read_graph", {}),
            ("search_nodes", {"query": "a"}),
        ),
        {"MEMORY_FILE_PATH": "{folder}/memory.json"},
    ),
    Server(
        "sequential-thinking",
        "npm @modelcontextprotocol/server-sequential-thinking",
        "mcp-server-sequential-thinking",
        (),
        (
            (
                "sequentialthinking",
                {
                    "thought": "one",
                    "nextThoughtNeeded": False,
                    "thoughtNumber": 1,
                    "totalThoughts": 1,
                },
            ),
        ),
    ),
    Server(
        "calc",
        "npm @coo-quack/calc-mcp",
        "calc-mcp",
        (),
        (("math", {"action": "eval", "expression": "2+3*4"}), ("base64", {"action": "encode"})),
    ),
    Server(
        "time",
        "PyPI mcp-server-time",
        "mcp-server-time",
        (),
        (
            (
                "convert_time",
                {
                    "source_timezone": "UTC",
                    "time": "12:00",
                    "target_timezone": "America/Chicago",
                },
            ),
            ("get_current_time", {"timezone": "Nowhere"}),
        ),
    ),
    Server(
        "git",
        "PyPI mcp-server-git",
        "mcp-server-git",
        (),
        (("git_status", {"repo_path": "{folder}"}), ("git_branch", {"repo_path": "{folder}"})),
    ),
    Server(
        "sqlite",
        "PyPI mcp-server-sqlite",
        "mcp-server-sqlite",
        ("--db-path", "{folder}/a.db"),
        (
            ("create_table", {"query": "CREATE TABLE t (a INTEGER)"}),
            ("write_query", {"query": "INSERT INTO t VALUES (7)"}),
            ("read_query", {"query": "SELECT * FROM t"}),
            ("read_query", {"query": "nonsense"}),
        ),
    ),
    Server(
        "calculator",
        "PyPI mcp-server-calculator",
        "mcp-server-calculator",
        (),
        (("calculate", {"expression": "6*7"}), ("calculate", {"expression": "6*"})),
    ),
    Server("fetch", "PyPI mcp-server-fetch", "mcp-server-fetch"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--npm", type=Path, default=Path(), help="where npm installed servers")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these servers")
    options = parser.parse_args()
    head = ("server", "tools", "the same", "prompts, resources", "the same")
    rows = [(*head, "answers", "the same", "alone ms", "behind ms")]
    for server in SERVERS:
        program = shutil.which(
            server.program, path=str(options.npm.absolute() / "node_modules" / ".bin")
        ) or shutil.which(server.program)
        if program and (not options.names or server.name in options.names):
            rows.append(anyio.run(compare, server, program))
    for row in rows:
        print(f"| {' | '.join(row)} |")


async def compare(server: Server, program: str) -> tuple[str, ...]:
    """Return a row about one server."""
    alone, behind = [await observed(server, program, behind=each) for each in (False, True)]
    same_tools = sum(alone["tools"].get(name) == tool for name, tool in behind["tools"].items())
    same_content = sum(alone["content"].get(key) == item for key, item in behind["content"].items())
    pairs = [(one, behind["results"].get(key, {})) for key, one in alone["results"].items()]
    for one, other in pairs:
        if not is_same(one, other):
            print(f"{server.name}: alone {one}\n  behind {other}", file=sys.stderr)
    for name, tool in alone["tools"].items():
        if behind["tools"].get(name) != tool:
            print(f"{server.name}.{name}: {behind['tools'].get(name)}", file=sys.stderr)
    for key, item in alone["content"].items():
        if (other := behind["content"].get(key)) != item:
            print(f"{server.name}.{key}: alone {item}\n  behind {other}", file=sys.stderr)
    return (
        server.package,
        str(len(alone["tools"])),
        str(same_tools),
        str(len(alone["content"])),
        str(same_content),
        str(len(pairs)),
        str(sum(is_same(one, other) for one, other in pairs)),
        f"{alone['milliseconds']:.1f}" if server.calls else "",
        f"{behind['milliseconds']:.1f}" if server.calls else "",
    )


def is_same(alone: Any, behind: Any) -> bool:
    """Tell whether two outcomes are the same; in the host's own refusal, the words differ."""
    refusal = behind.get("structuredContent", {}).get("error_type") == "invalid_input"
    return alone["isError"] if refusal else bool(alone == behind)


async def observed(server: Server, program: str, *, behind: bool) -> dict[str, Any]:
    """Return what a client sees of a server in an empty folder of its own."""
    # The same path for both: some answers quote it.
    folder = Path(tempfile.gettempdir()) / "standards-mcp-public-server"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    await anyio.run_process(["git", "init", "-q", "-b", "main", str(folder)])

    def placed(value: Any) -> Any:
        return json.loads(json.dumps(value).replace("{folder}", str(folder)))

    entry = {"command": program, "args": placed(server.args), "env": placed(dict(server.env))}
    with tempfile.TemporaryDirectory() as state:
        if behind:
            file = Path(state) / "servers.json"
            file.write_text(json.dumps({"mcpServers": {server.name: entry}}))
            config = Path(state) / "standards-mcp.toml"
            config.write_text(f"state_dir = '{state}'\nservers_file = '{file}'\n")
            command = [sys.executable, "-m", "standards_mcp", "--config", str(config), "serve"]
            parameters = StdioServerParameters(command=command[0], args=command[1:])
        else:
            parameters = StdioServerParameters(**entry)
        with open(os.devnull, "w") as errors:  # noqa: ASYNC230, PTH123
            async with Client(stdio_client(parameters, errors), cache=None) as client:
                prefix = f"{server.name}_" if behind else ""
                return await ask(client, prefix, placed(server.calls))


async def ask(client: Client, prefix: str, calls: list[Any]) -> dict[str, Any]:
    listed = await client.list_tools()
    tools = {
        tool.name.removeprefix(prefix): definition(tool)
        for tool in listed.tools
        if tool.name.startswith(prefix)
    }
    content = await contents(client, prefix)
    results = await answers(client, prefix, content)
    times: list[float] = []
    for number, (name, arguments) in enumerate(calls):
        results[f"call {number}"] = await outcome(client, prefix + name, arguments)
    for _ in range(CALLS if calls else 0):
        began = time.perf_counter()
        await outcome(client, prefix + calls[0][0], calls[0][1])
        times.append(time.perf_counter() - began)
    milliseconds = statistics.median(times) * 1000 if times else 0.0
    found = {"tools": tools, "content": content, "results": results}
    return {**found, "milliseconds": milliseconds}


async def contents(client: Client, prefix: str) -> dict[str, Any]:
    """Return what of each prompt, resource and template must be the same, by name or URI."""
    able = client.server_capabilities
    listed: list[Any] = []
    if able and able.prompts:
        listed += (await client.list_prompts()).prompts
    if able and able.resources:
        listed += (await client.list_resources()).resources
        with suppress(MCPError):  # some servers have no templates, and say so in this way
            listed += (await client.list_resource_templates()).resource_templates
    found: dict[str, Any] = {}
    for item in listed:
        if item.name.startswith(prefix):
            name = f"prompt {item.name.removeprefix(prefix)}"
            found[getattr(item, "uri", getattr(item, "uri_template", name))] = plain(item)
    return found


def plain(item: Any) -> dict[str, Any]:
    """Return a definition without its name, which has the server's before it behind the host."""
    data = item.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"})
    data["title"] = data.get("title") or ("" if "arguments" in data else data["name"])
    data["arguments"] = [
        {**each, "required": bool(each.get("required"))} for each in data.get("arguments", ())
    ]
    del data["name"]
    return data


async def answers(client: Client, prefix: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what each prompt says, each resource holds, and each argument may be."""
    found: dict[str, Any] = {}
    for key, item in content.items():
        uri = re.sub(r"\{[^}]*\}", "1", key)
        given = dict.fromkeys(re.findall(r"\{(\w+)\}", key), "1")
        ref: Any = ResourceTemplateReference(type="ref/resource", uri=key)
        answer: Awaitable[Any]
        if key.startswith("prompt "):
            name = prefix + key.removeprefix("prompt ")
            given = {each["name"]: "1" for each in item["arguments"]}
            ref = PromptReference(type="ref/prompt", name=name)
            answer = client.get_prompt(name, given)
        else:
            answer = client.read_resource(uri)
        found[key] = await asked(answer)
        if client.server_capabilities and client.server_capabilities.completions:
            for name in given:
                values = client.complete(ref, {"name": name, "value": ""})
                found[f"{key} {name}"] = await asked(values)
    return found


async def asked(answer: Awaitable[Any]) -> Any:
    try:
        result = await answer
    except MCPError as exc:
        return {"code": exc.code, "message": exc.message}
    left_out = {"meta", "ttl_ms", "cache_scope"}
    data = result.model_dump(mode="json", by_alias=True, exclude_none=True, exclude=left_out)
    for part in data.get("contents", ()):
        if "blob" in part:
            part["blob"] = base64.b64decode(part["blob"]).decode(errors="replace")
    return json.loads(VOLATILE.sub("~", json.dumps(data)))


def definition(tool: Any) -> dict[str, Any]:
    """Return what of a tool must be the same."""
    hints = tool.annotations
    return {
        "input": tool.input_schema,
        "output": tool.output_schema,
        "description": (tool.description or "").strip(),
        "read_only": bool(hints and hints.read_only_hint),
    }


async def outcome(client: Client, name: str, arguments: dict[str, Any]) -> Any:
    result = await client.call_tool(name, arguments)
    data = result.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"})
    return json.loads(VOLATILE.sub("~", json.dumps(data)))


if __name__ == "__main__":
    main()
