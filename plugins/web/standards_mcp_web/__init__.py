"""Live web search, on Brave or on a SearXNG of one's own.

The plugin is `standards_mcp_web.plugin.WebPlugin`.
"""
