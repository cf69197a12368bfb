"""The server side of MCP: the one part of the host that answers clients."""
