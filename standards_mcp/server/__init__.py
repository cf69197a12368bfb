"""The server side of MCP: answers clients, over whatever transport.

`cli` and `testing` may import it.
"""
