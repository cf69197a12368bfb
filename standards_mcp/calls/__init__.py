"""Run calls of tools, prompts and resources through a pipeline of steps, one for each concern.

`loading` and every layer above may import this package.
"""
