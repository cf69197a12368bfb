"""Plugins of this environment that run in a process of their own.

`server.isolated` is what runs in that process.
"""
