"""The embedded store: one SQLite database and an index that is derived from it."""
