"""Plugins whose code runs elsewhere: isolated plugins and other MCP servers.

This package has the client side of MCP. `host` and `server` may import it.
"""
