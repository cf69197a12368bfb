"""Everything around one call of a tool, a prompt or a resource; each concern is a step.

`loading` and every layer above may import it.
"""
