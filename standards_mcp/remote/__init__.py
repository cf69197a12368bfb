"""Plugins whose code runs elsewhere: the client side of MCP.

`host` and `server` may import it.
"""
