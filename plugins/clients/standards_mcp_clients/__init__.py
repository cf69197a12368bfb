"""``standards-mcp install``, ``uninstall`` and ``clients``: add this server to MCP clients."""
