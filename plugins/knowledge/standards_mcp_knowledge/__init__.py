"""Search datasets of documentation by meaning, with FAISS in worker processes.

Worker processes import this package, so it imports nothing heavy itself. The plugin is
`standards_mcp_knowledge.plugin.KnowledgePlugin`.
"""
