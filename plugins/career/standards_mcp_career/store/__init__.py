"""What the plugin keeps, in SQLite: `database`, `migrating`, and one module a repository."""
