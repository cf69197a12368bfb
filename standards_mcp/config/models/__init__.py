"""The tables of the configuration as pydantic models."""
