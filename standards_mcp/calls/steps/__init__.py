"""The steps of a call, in a module for each concern; `standards_mcp.calls.pipeline` orders them.

A step gets the call and the rest of the pipeline. No other step sees what it keeps between calls.
"""
