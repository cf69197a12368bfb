"""``check_coverage``: the standards of a grade that activities meet, and the missing ones."""
