"""What plugins contribute: read, checked, and selected by the configuration."""
