"""Raises GeneratorExit in its constructor."""

from standards_mcp import Plugin


class AbortsPlugin(Plugin):
    def __init__(self, *_):
        raise GeneratorExit
