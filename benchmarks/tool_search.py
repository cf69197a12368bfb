"""Tool search: the tokens of the tool list before and after, and how often the right tool is found.

usage: python benchmarks/tool_search.py [--npm FOLDER] [--words] [--misses]

Ten public servers run behind the host, which lists all of their tools, and then searches them. The
definitions are those of the installed packages; no server needs the network to list its tools. The
tasks are our own, in the words of somebody who does not know the tools. The weights of the ranking
were set with 100 of them; 50 more were written afterwards. With --words the search has
no text encoder. See docs/benchmarks.md for the installation.
"""

import argparse
import asyncio
import csv
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from standards_mcp._utils.text import tokens

TASKS = Path(__file__).with_name("tool_search_tasks.csv")
FIRST = 5
# Program, arguments and variables. The values of the variables are not used to list tools.
SERVERS: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "chrome": ("chrome-devtools-mcp", (), {}),
    "filesystem": ("mcp-server-filesystem", ("{folder}",), {}),
    "git": ("mcp-server-git", (), {}),
    "gitlab": ("mcp-gitlab", (), {"GITLAB_PERSONAL_ACCESS_TOKEN": "none"}),
    "kubernetes": ("mcp-server-kubernetes", (), {}),
    "memory": ("mcp-server-memory", (), {"MEMORY_FILE_PATH": "{folder}/memory.json"}),
    "mongodb": (
        "mongodb-mcp-server",
        (),
        {
            "MDB_MCP_API_CLIENT_ID": "none",
            "MDB_MCP_API_CLIENT_SECRET": "none",
            "MDB_MCP_CONNECTION_STRING": "mongodb://localhost:1",
            "MDB_MCP_TELEMETRY": "disabled",
        },
    ),
    "notion": ("notion-mcp-server", (), {"NOTION_TOKEN": "none"}),
    "sentry": ("sentry-mcp", ("--access-token=none",), {}),
    "sqlite": ("mcp-server-sqlite", ("--db-path", "{folder}/a.db"), {}),
}
WITHOUT_ENCODER = (
    "import sys; sys.modules['onnxruntime'] = None\n"
    "from standards_mcp.__main__ import main; sys.exit(main())"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--npm", type=Path, default=Path(), help="where npm installed servers")
    parser.add_argument("--words", action="store_true", help="search without the text encoder")
    parser.add_argument("--misses", action="store_true", help="print the tasks that fail")
    options = parser.parse_args()
    asyncio.run(measure(options.npm, is_words=options.words, shows_misses=options.misses))


async def measure(npm: Path, *, is_words: bool, shows_misses: bool) -> None:
    with tempfile.TemporaryDirectory() as state:
        folder = Path(state)
        write_config(folder, npm, "list", searches_writing=False)
        async with connected(folder, is_words=is_words) as client:
            full = await all_tools(client)
        count = len(full)
        print(f"{count} tools of {len(SERVERS)} servers; the list: {list_tokens(full):,} tokens")
        for searches_writing in (False, True):
            write_config(folder, npm, "search", searches_writing=searches_writing)
            async with connected(folder, is_words=is_words) as client:
                listed = await all_tools(client)
                kinds = "all tools" if searches_writing else "read-only tools"
                print(f"search of {kinds}: {len(listed)} listed, {list_tokens(listed):,} tokens")
                if searches_writing:
                    await ask(client, shows_misses=shows_misses)


def write_config(folder: Path, npm: Path, discovery: str, *, searches_writing: bool) -> None:
    """Write a configuration with the servers; each is run by its installed program."""
    path = f"{npm.absolute() / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
    lines = [
        f"state_dir = {json.dumps(str(folder))}",
        "autoload = false\n[plugins]\nsearch.enabled = false\nlookup.enabled = false",
        f'[tools]\ndiscovery = "{discovery}"\nsearch_writing = {str(searches_writing).lower()}',
    ]
    for name, (program, arguments, variables) in SERVERS.items():
        command = shutil.which(program, path=path)
        if command is None:
            sys.exit(f"{program} is not installed")
        args = [argument.format(folder=folder) for argument in arguments]
        env = {key: value.format(folder=folder) for key, value in variables.items()}
        table = "".join(f"{key} = {json.dumps(value)}\n" for key, value in env.items())
        lines.append(
            f"[servers.{name}]\ncommand = {json.dumps(command)}\nargs = {json.dumps(args)}"
        )
        lines.append(f'approve = "always"\nstart_timeout = 60\n[servers.{name}.env]\n{table}')
    (folder / "standards-mcp.toml").write_text("\n".join(lines))


@asynccontextmanager
async def connected(folder: Path, *, is_words: bool) -> AsyncGenerator[Client]:
    program = ["-c", WITHOUT_ENCODER] if is_words else ["-m", "standards_mcp"]
    args = [*program, "--config", str(folder / "standards-mcp.toml"), "serve"]
    options = {"cwd": str(folder), "env": {**os.environ, "STANDARDS_MCP_SERVER__SNAPSHOT": "false"}}
    parameters = StdioServerParameters(command=sys.executable, args=args, **options)
    with (folder / "stderr").open("a") as errors:
        async with Client(stdio_client(parameters, errors), cache=None) as client:
            yield client


async def all_tools(client: Client) -> list[Any]:
    tools, cursor = list[Any](), None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        if not (cursor := page.next_cursor):
            return tools


def list_tokens(tools: list[Any]) -> int:
    return sum(tokens(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in tools)


async def ask(client: Client, *, shows_misses: bool) -> None:
    """Search for each task, and print the share whose tool is among the first."""
    with TASKS.open(newline="") as file:
        tasks = [tuple(row.values()) for row in csv.DictReader(file)]
    for kind in ("tuning", "unseen"):
        print(f"{kind}:")
        chosen = [(task, set(tools.split())) for task, tools, each in tasks if each == kind]
        await ask_all(client, chosen, shows_misses=shows_misses)


async def ask_all(client: Client, tasks: list[tuple[str, set[str]]], *, shows_misses: bool) -> None:
    places, seconds, sizes = list[int](), list[float](), list[int]()
    for task, right in tasks:
        began = time.perf_counter()
        result = await client.call_tool("search_tools", {"query": task, "max_results": 20})
        seconds.append(time.perf_counter() - began)
        found = [tool["name"] for tool in result.structured_content["tools"]]
        place = next((at for at, name in enumerate(found, 1) if name in right), 0)
        places.append(place)
        first = result.structured_content["tools"][:FIRST]
        sizes.append(tokens(json.dumps(first)))
        if shows_misses and not 0 < place <= FIRST:
            print(f"  {place or '-'} {task!r}: {' '.join(right)}; found {' '.join(found[:FIRST])}")
    for most in (1, 3, FIRST):
        share = sum(0 < place <= most for place in places) / len(places)
        print(f"the right tool among the first {most}: {share:.2f} of {len(places)} tasks")
    print(
        f"an answer with {FIRST} tools: {statistics.median(sizes):,.0f} tokens (median); a search:"
        f" {statistics.median(seconds[1:]) * 1000:.0f} ms (median), the first {seconds[0]:.1f} s"
    )


if __name__ == "__main__":
    main()
