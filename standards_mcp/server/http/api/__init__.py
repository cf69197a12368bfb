"""Plain HTTP beside MCP: the tools as a REST API, and the routes of plugins."""
