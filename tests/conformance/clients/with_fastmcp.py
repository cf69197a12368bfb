"""A client on FastMCP: lists tools, calls one, and prints both as JSON."""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main(tool: str, arguments: str, target: str, *rest: str) -> None:
    over_http = target.startswith("http")
    server = (
        target
        if over_http
        else StdioTransport(command=target, args=list(rest), env=dict(os.environ))
    )
    async with Client(server) as client:
        tools = [each.name for each in await client.list_tools()]
        result = await client.call_tool(tool, json.loads(arguments))
        print(json.dumps({"tools": tools, "structured": result.structured_content}))


asyncio.run(main(*sys.argv[1:]))
