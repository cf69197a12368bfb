"""Plugins whose code runs elsewhere: the client side of MCP."""
