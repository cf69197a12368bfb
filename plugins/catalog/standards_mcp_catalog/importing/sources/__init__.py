"""Where documents come from: files, archives, addresses and services."""
