"""``standards-mcp install``: adds this server to the configuration of clients."""
