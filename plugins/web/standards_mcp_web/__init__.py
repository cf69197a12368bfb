"""Live web search, by Brave or by your own SearXNG.

The plugin is `standards_mcp_web.plugin.WebPlugin`.
"""
