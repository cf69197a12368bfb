"""The commands of ``standards-mcp career``."""
