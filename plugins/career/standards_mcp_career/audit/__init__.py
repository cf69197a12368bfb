"""The audit log: append-only, one chain of hashes for each trace."""
