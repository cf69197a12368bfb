"""Products to try searches with: all of them, their makers and their prices are invented."""
