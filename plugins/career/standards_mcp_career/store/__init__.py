"""The SQLite database: connections, migrations, and one repository module for each kind."""
