"""``standards-mcp doctor``: looks for what keeps a client from being served."""
