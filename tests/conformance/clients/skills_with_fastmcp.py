"""A client on FastMCP: lists skills, verifies all files of each, and prints their paths as JSON."""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.skills import SkillsClientExtension


async def main(target: str, *rest: str) -> None:
    over_http = target.startswith("http")
    server = (
        target
        if over_http
        else StdioTransport(command=target, args=list(rest), env=dict(os.environ))
    )
    async with Client(server, extensions=[SkillsClientExtension()]) as client:
        found = {}
        for entry in await client.list_skills():
            # Reading a skill compares each file with the entry, and the front matter, too.
            skill = await client.read_skill(str(entry.uri))
            found[str(entry.uri)] = sorted(skill.files)
        print(json.dumps(found))


asyncio.run(main(*sys.argv[1:]))
