"""Signed snapshots of the embedded catalog: one machine publishes, others pull a read-only copy."""
