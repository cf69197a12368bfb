"""Search datasets of documentation by meaning, with FAISS in worker processes.

Worker processes import this package, so this module imports nothing heavy. The plugin class is
`standards_mcp_knowledge.plugin.KnowledgePlugin`.
"""
