"""What a connection to another MCP server runs over, and the processes at its other end."""
