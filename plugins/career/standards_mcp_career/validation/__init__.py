"""The rules that a match report must keep."""
