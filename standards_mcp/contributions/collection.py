"""The contributions of one plugin, or of all plugins together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from standards_mcp.plugin import Filter

from .prompts import RegisteredPrompt
from .resources import RegisteredResource
from .routes import RegisteredRoute
from .tools import RegisteredTool


@dataclass(frozen=True, slots=True)
class RegisteredFilter:
    """A filter and the plugin that registered it."""

    plugin: str
    filter: Filter

    @property
    def name(self) -> str:
        """The name of the argument that tools get."""
        return self.filter.name


@dataclass(frozen=True, slots=True)
class Contributions:
    """What plugins contribute, in a stable order; a new kind of contribution is a new field."""

    tools: tuple[RegisteredTool, ...] = ()
    prompts: tuple[RegisteredPrompt, ...] = ()
    resources: tuple[RegisteredResource, ...] = ()
    filters: tuple[RegisteredFilter, ...] = ()
    routes: tuple[RegisteredRoute, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    @classmethod
    def merged(cls, parts: Iterable[Contributions]) -> Contributions:
        """Return all of *parts* as one."""
        parts = tuple(parts)
        return cls(
            *(
                tuple(item for part in parts for item in getattr(part, field.name))
                for field in fields(cls)
            )
        )
