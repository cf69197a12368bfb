"""A client on version 2 of the SDK for Python: lists tools, calls one, and prints both as JSON."""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters


async def main(tool: str, arguments: str, target: str, *rest: str) -> None:
    over_http = target.startswith("http")
    server = (
        target
        if over_http
        else StdioServerParameters(command=target, args=list(rest), env=dict(os.environ))
    )
    async with Client(server) as client:
        tools = [each.name for each in (await client.list_tools()).tools]
        result = await client.call_tool(tool, json.loads(arguments))
        print(json.dumps({"tools": tools, "structured": result.structured_content}))


asyncio.run(main(*sys.argv[1:]))
