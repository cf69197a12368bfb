"""Parse requirements and claims: meaningful words, numbers and negations."""
