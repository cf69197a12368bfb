"""A client on version 1 of the SDK for Python: lists tools, calls one, and prints both as JSON."""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def main(tool: str, arguments: str, target: str, *rest: str) -> None:
    over_http = target.startswith("http")
    server = StdioServerParameters(command=target, args=list(rest), env=dict(os.environ))
    transport = streamablehttp_client(target) if over_http else stdio_client(server)
    async with transport as (reader, writer, *_), ClientSession(reader, writer) as session:
        await session.initialize()
        tools = [each.name for each in (await session.list_tools()).tools]
        result = await session.call_tool(tool, json.loads(arguments))
        print(json.dumps({"tools": tools, "structured": result.structuredContent}))


asyncio.run(main(*sys.argv[1:]))
