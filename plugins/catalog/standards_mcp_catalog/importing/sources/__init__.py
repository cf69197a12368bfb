"""Sources of documents: files, archives, addresses and services."""
