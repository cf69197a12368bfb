"""Memories of a team in Qdrant: searched by preview, fetched in full.

The plugin is `standards_mcp_memory.plugin.MemoryPlugin`.
"""
