"""Secrets of plugins that stand where others can read them: in a file or on a command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from .discovery import PluginRecord
from .masking import declares_secret
from .setting_layers import DOT_ENV, ENVIRONMENT, Layers, variable_name


def exposed_secrets(records: Iterable[PluginRecord], layers: Layers) -> Iterator[str]:
    """Yield a line for each secret outside the environment and ``.env``, as far as is known.

    Which keys of an isolated plugin are secret, only its own process knows.
    """
    models = {record.name: record.settings_type for record in records if record.settings_type}
    for layer in layers.ordered:
        if layer.name in (ENVIRONMENT, DOT_ENV):
            continue
        for name, model in models.items():
            table = ("plugins", name)
            options = layer.value(table) if layer.sets(table) else None
            for path, value in _leaves(options):
                if declares_secret(model, path, value):
                    key = (*table, *path)
                    yield (
                        f"{layer.where(key)}: a secret does not belong here; set "
                        f"{variable_name(key)} in the environment or in .env"
                    )


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value with the keys that lead to it; a list counts as one."""
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, Any]", value).items():
            yield from _leaves(inner, (*path, key))
    elif path:
        yield path, value
