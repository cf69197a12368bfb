"""Names of standards as people write them: codes, grades, subjects, places."""
