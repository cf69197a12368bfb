"""The command ``standards-mcp plugins new``."""
