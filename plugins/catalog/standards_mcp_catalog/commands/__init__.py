"""``standards-mcp data``: load, look at and upload standards."""
