"""The versions of the database. What was released is never changed."""
