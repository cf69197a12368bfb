"""``compare_standards``: what changed between two sets or two editions of standards."""
