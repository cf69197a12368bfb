"""The SQLite database: connections, migrations and repositories."""
