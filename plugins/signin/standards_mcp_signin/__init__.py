"""Sign in at other MCP servers by OAuth 2.1, for the host or for each of its users."""
