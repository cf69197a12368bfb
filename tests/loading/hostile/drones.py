"""Answers without an end: a tool, a prompt, a resource and a completion."""

import itertools

from standards_mcp import Plugin, prompt, resource, tool


def words(*_):
    return map(str, itertools.count())


class DronesPlugin(Plugin):
    @tool
    def drone(self):
        """Drone."""
        return words()

    @prompt(complete={"word": words})
    def drone_prompt(self, word: str = "") -> str:
        """Drone."""
        return words()

    @resource("drones://thing")
    def drone_resource(self):
        """Drone."""
        return words()
