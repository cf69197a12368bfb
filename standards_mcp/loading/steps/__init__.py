"""The steps from an installed entry point to what a plugin contributes."""
