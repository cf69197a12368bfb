"""Parse names as people write them: codes, grades, subjects, places."""
