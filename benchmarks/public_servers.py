"""Compare public MCP servers that need no network: alone, and behind the host.

usage: python benchmarks/public_servers.py [--npm FOLDER] [NAME ...]

Each server is started once by the SDK's client, and once by the host, with the same client in
front of it. A row says whether both list the same tools (schemas, descriptions, hints) and whether
the calls that are made here come back the same: content, structure and error flag. Arguments that
do not fit are refused by the host itself, in its own words; that both refuse them counts. The times
are for one call, the median of 20.

The servers of npm are looked for in FOLDER/node_modules (`npm install` them there), those of PyPI
on the path (`uv tool install`, with `--with 'mcp<2'` for sqlite); what is not there is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

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
    rows = [("server", "tools", "the same", "calls", "the same", "alone ms", "behind ms")]
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
    pairs = list(zip(alone["results"], behind["results"], strict=True))
    for one, other in pairs:
        if not is_same(one, other):
            print(f"{server.name}: alone {one}\n  behind {other}", file=sys.stderr)
    for name, tool in alone["tools"].items():
        if behind["tools"].get(name) != tool:
            print(f"{server.name}.{name}: {behind['tools'].get(name)}", file=sys.stderr)
    return (
        server.package,
        str(len(alone["tools"])),
        str(same_tools),
        str(len(pairs)),
        str(sum(is_same(one, other) for one, other in pairs)),
        f"{alone['milliseconds']:.1f}" if pairs else "",
        f"{behind['milliseconds']:.1f}" if pairs else "",
    )


def is_same(alone: Any, behind: Any) -> bool:
    """Tell whether two outcomes are the same; in the host's own refusal, the words differ."""
    refusal = behind.get("structuredContent", {}).get("error_type") == "invalid_input"
    return alone["isError"] if refusal else alone == behind


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
    results: list[Any] = []
    times: list[float] = []
    for name, arguments in calls:
        results.append(await outcome(client, prefix + name, arguments))
    for _ in range(CALLS if calls else 0):
        began = time.perf_counter()
        await outcome(client, prefix + calls[0][0], calls[0][1])
        times.append(time.perf_counter() - began)
    milliseconds = statistics.median(times) * 1000 if times else 0.0
    return {"tools": tools, "results": results, "milliseconds": milliseconds}


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
