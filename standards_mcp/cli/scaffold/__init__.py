"""``standards-mcp plugins new``: writes the project of a new plugin."""
