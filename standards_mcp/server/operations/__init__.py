"""What operators want to know of calls: the audit log, metrics and traces."""
