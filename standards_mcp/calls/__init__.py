"""Runs a call of a tool, a prompt or a resource. Each concern around the function is a step.

`loading` and every layer above may import this package.
"""
