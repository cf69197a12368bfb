"""Plugins of this environment that run in a process of their own."""
