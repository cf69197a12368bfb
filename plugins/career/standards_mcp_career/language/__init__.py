"""Read what texts of requirements and claims say: meaningful words, numbers and negations."""
