"""What clients see of what plugins contribute."""
