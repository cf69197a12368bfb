"""What Alembic runs: one file a version."""
