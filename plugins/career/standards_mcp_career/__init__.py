"""Match opportunities with proven claims, and keep decisions and applications."""
