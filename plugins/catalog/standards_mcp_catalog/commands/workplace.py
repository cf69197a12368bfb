"""The objects of the ``data`` commands, and the completions of their arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import anyio
import click

from standards_mcp.commands import counted
from standards_mcp_catalog import open_local
from standards_mcp_catalog.base import Catalog
from standards_mcp_catalog.settings import CatalogSettings

if TYPE_CHECKING:
    from standards_mcp_catalog.local.catalog import LocalCatalog


@dataclass
class Workplace:
    """The settings of the catalog and its stores; each is opened when a command needs it.

    Attributes:
        configured: Returns the catalog that searches use.
    """

    settings: CatalogSettings
    configured: Callable[[], Catalog]

    @cached_property
    def embedded(self) -> LocalCatalog:
        """The embedded catalog, whichever one the configuration chooses for searches."""
        local = self.settings.local
        return open_local(self.settings.path, local.model, local.api_key)

    def close(self) -> None:
        """Close the embedded catalog."""
        if "embedded" in vars(self):
            anyio.run(self.embedded.aclose)


class DataCommands(click.Group):
    """A group whose commands get a `Workplace` as their object, also for completion."""

    workplace: Workplace

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Return the context with the workplace, which is closed with it."""
        ctx = super().make_context(*args, **kwargs)
        ctx.obj = self.workplace
        ctx.call_on_close(self.workplace.close)
        return ctx


def loaded_sets(workplace: Workplace) -> Iterator[tuple[str, str]]:
    """Yield the standard sets that are loaded."""
    for each in workplace.embedded.store.sets():
        yield each.id, f"{each.title} ({each.jurisdiction_title}, {each.subject})"


def loaded_sets_and_crosswalks(workplace: Workplace) -> Iterator[tuple[str, str]]:
    """Yield the standard sets and the crosswalks that are loaded."""
    yield from loaded_sets(workplace)
    for each, _ in workplace.embedded.store.crosswalks():
        yield each


def loaded_jurisdictions(workplace: Workplace) -> Iterator[tuple[str, str]]:
    """Yield the jurisdictions that have standards."""
    counts = Counter(each.jurisdiction_title for each in workplace.embedded.store.sets())
    for title, count in counts.items():
        yield title, counted(count, "set")
