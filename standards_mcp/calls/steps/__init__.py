"""The steps of a call, one file for each concern; `standards_mcp.calls.pipeline` orders them.

A step gets the call and what comes after it. What it keeps between calls is its own.
"""
