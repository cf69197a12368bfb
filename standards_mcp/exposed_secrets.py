"""Secrets of plugins that stand where others can read them: in a file or on a command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from .discovery import PluginRecord
from .masking import declares_secret
from .setting_layers import Layers


def exposed_secrets(records: Iterable[PluginRecord], layers: Layers) -> Iterator[str]:
    """Yield a line for each secret outside the environment and ``.env``, as far as is known.

    Which keys of an isolated plugin are secret, only its own process knows.
    """
    models = {record.name: record.settings_type for record in records if record.settings_type}
    for layer in layers.ordered:
        if layer.has_variables:
            continue
        for name, model in models.items():
            table = ("plugins", name)
            options = layer.value(table) if layer.sets(table) else None
            for path, value in _leaves(options):
                if declares_secret(model, path, value):
                    yield layer.misplaced((*table, *path))


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value with the keys that lead to it; a list counts as one."""
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, Any]", value).items():
            yield from _leaves(inner, (*path, key))
    elif path:
        yield path, value
