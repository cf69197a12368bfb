"""The server side of MCP: answer clients over stdio and HTTP."""
