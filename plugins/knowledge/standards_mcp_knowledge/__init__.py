"""Knowledge: questions to datasets of documentation, answered by FAISS in worker processes.

Worker processes import this package, too, so it imports nothing itself. The plugin is
`standards_mcp_knowledge.plugin.KnowledgePlugin`.
"""
