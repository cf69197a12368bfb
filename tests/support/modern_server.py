"""An MCP server of the 2026 generation, on the SDK.

usage: python modern_server.py [PORT]

It serves by HTTP at PORT, or on its stdin and stdout.
"""

import sys
from typing import Annotated

from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestURLParams,
    InputRequiredResult,
)
from pydantic import BaseModel, Field


class Name(BaseModel):
    name: str


async def ask_name() -> Name | Elicit[Name]:
    return Elicit("Your name?", Name)


server = MCPServer("modern", version="2")


@server.tool()
def add(a: int, b: int = 1) -> int:
    return a + b


@server.tool()
def place(where: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Where"})]) -> str:
    return where


@server.tool()
async def greet(greeting: str, name: Annotated[Name, Resolve(ask_name)]) -> str:
    return f"{greeting} {name.name}"


@server.tool()
async def odd(how: str, ctx: Context) -> str | InputRequiredResult:
    if how == "wait" and ctx.request_state is None:
        return InputRequiredResult(request_state="later")
    if ctx.input_responses:
        return f"the model said {ctx.input_responses['it'].content.text}"
    if how == "sample":
        params = CreateMessageRequestParams(messages=[], max_tokens=1)
        return InputRequiredResult(input_requests={"it": CreateMessageRequest(params=params)})
    if how == "show":
        page = {"url": "https://example.org", "message": "Look.", "elicitation_id": "1"}
        request = ElicitRequest(params=ElicitRequestURLParams(**page))
        return InputRequiredResult(input_requests={"it": request})
    return "done"


@server.resource("demo://one")
def one() -> str:
    return "one"


@server.prompt(name="greet")
def greet_by_prompt(who: str) -> str:
    return f"Hello, {who}"


@server.tool()
async def touch(value: str, ctx: Context) -> str:
    await ctx.notify_resource_updated(value)
    return "done"


@server.tool()
async def grow(ctx: Context) -> str:
    server.add_tool(add, name="more")
    server.resource("demo://more")(one)
    await ctx.notify_tools_changed()
    await ctx.notify_resources_changed()
    return "grown"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    server.run()
