"""The sources of settings as layers, with the names of keys in each and their lines in a file.

Layers stay separate after the merge, so that errors, ``config show --origin`` and the check for
exposed secrets can name the source of each value. The last functions complete the settings of a
plugin: only its model declares which of its keys are paths or have variables of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, cast, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from standards_mcp._utils.text import printable
from standards_mcp.errors import ConfigError
from standards_mcp.plugin import Variable

from .models import is_table, takes_json
from .models.settings import ENV_PREFIX

ENVIRONMENT: Final = "environment"
DOT_ENV: Final = ".env"
Keys: TypeAlias = tuple[str, ...]
KeyPath: TypeAlias = Sequence[str | int]
"""The keys that lead to a value; a number is the index in a list."""
# Clients write this for an optional field of a bundle that the user left empty.
_PLACEHOLDER: Final = "${user_config."
_NOT_SET: Final = object()
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One source of values, with its name for errors.

    Attributes:
        text: The text of a file, to find the lines of keys.
        folder: The folder in which relative paths start.
        variables: The texts of the variables that set the values, by their names in capitals.
        others: The texts of all other variables, by their names in capitals. Keys of
            plugins may have such a variable of their own.
        own_names: The names of the plugins' own variables that are set, by the paths of the keys.
    """

    name: str
    values: dict[str, Any] = field(repr=False)  # secrets may be among them
    text: str = field(default="", repr=False)
    folder: Path = Path()
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    others: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    own_names: Mapping[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])

    def value(self, path: KeyPath, default: Any = None) -> Any:
        """Return the value at *path*, or *default*; for an element of a list, the list."""
        value: Any = self.values
        for key in map(str, path):
            if isinstance(value, list) and key.isdigit():
                break
            if not isinstance(value, Mapping) or key not in value:
                return default
            value = cast("Mapping[str, Any]", value)[key]
        return cast("Any", value)

    def sets(self, path: KeyPath) -> bool:
        """Return True if this layer sets the key at *path*."""
        return self.value(path, _NOT_SET) is not _NOT_SET

    def sets_value(self, path: KeyPath) -> bool:
        """Return True if this layer sets *path* to a plain value, not to a table."""
        return self.sets(path) and not isinstance(self.value(path), Mapping)

    def location(self, path: KeyPath) -> str:
        """Return the name of the layer; for a file, with the line of the key at *path*."""
        line = line_of(self.text, path) if self.text else None
        return self.name if line is None else f"{self.name}:{line}"

    @property
    def has_variables(self) -> bool:
        """True if the values come from variables; only these may hold secrets."""
        return self.name in (ENVIRONMENT, DOT_ENV)

    def where(self, path: KeyPath) -> str:
        """Return the location of the key at *path*, and the variable or key that sets it."""
        variable = self.own_names.get(tuple(map(str, path))) or variable_name(path)
        return f"{self.location(path)}: {variable if self.has_variables else key_name(path)}"


class Layers(NamedTuple):
    """All sources; the values of the first one have priority."""

    ordered: tuple[Layer, ...] = ()

    def merged(self) -> dict[str, Any]:
        """Return the values in force, with tables merged key by key."""
        values: dict[str, Any] = {}
        for layer in reversed(self.ordered):
            values = merged(values, layer.values)
        return values

    def source(self, path: KeyPath) -> Layer | None:
        """Return the highest layer that sets the key at *path*, or None."""
        return next((layer for layer in self.ordered if layer.sets(path)), None)

    def origin(self, path: KeyPath) -> str:
        """Return the location of the key at *path* in its highest layer, or an empty string."""
        layer = self.source(path)
        return layer.location(path) if layer else ""

    def where(self, path: KeyPath) -> str:
        """Return where to correct the key at *path*: the source, and the key's name in it."""
        # The plain value of the highest layer is in force. A table is merged from all layers that
        # have it. A missing key is best added to the rest of its table: the lowest layer with the
        # table is the file, where most users write.
        layers = [layer for layer in self.ordered if layer.sets_value(path)][:1]
        layers = layers or [layer for layer in self.ordered if layer.sets(path)]
        for depth in range(len(path) - 1, 1, -1):
            layers = layers or [layer for layer in self.ordered if layer.sets(path[:depth])][-1:]
        return " and ".join(layer.where(path) for layer in reversed(layers)) or key_name(path)

    def variables(self) -> dict[str, str]:
        """Return the texts of the variables whose values no higher layer replaces."""
        in_force: dict[str, str] = {}
        for layer in reversed(self.ordered):  # the command line replaces variables, too
            kept = (item for item in in_force.items() if not layer.sets_value(path_of(item[0])))
            in_force = dict(kept) | dict(layer.variables)
        return in_force


def merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return *base* with the values of *over*; tables are merged key by key.

    A table does not replace a plain value, so that validation reports that value.
    """
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        if not isinstance(value, Mapping) or below is None:
            result[key] = value
        elif isinstance(below, dict):
            result[key] = merged(cast("dict[str, Any]", below), cast("Mapping[str, Any]", value))
    return result


def nested(path: Sequence[str], value: Any) -> Any:
    """Return *value* in a table for each key of *path*."""
    for key in reversed(path):
        value = {key: value}
    return value


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each value with its path, the values of a table before its inner tables.

    A list counts as one value; an empty table yields nothing.
    """
    if not isinstance(value, Mapping):
        yield path, value
        return
    items = cast("Mapping[str, Any]", value).items()
    for key, inner in sorted(items, key=lambda item: isinstance(item[1], Mapping)):
        yield from leaves(inner, (*path, key))


def variable_name(path: KeyPath) -> str:
    """Return the environment variable that sets the key at *path*, in capitals."""
    keys, inside = _split(path)
    return ENV_PREFIX + "__".join(keys).upper() + inside


def variable_advice(path: KeyPath, own: str | None = None) -> str:
    """Return the advice to set a variable, for a secret that is missing or readable to others.

    Args:
        own: The key's own variable, if a plugin declares one.
    """
    return f"set {own or variable_name(path)} in the environment or in .env"


def path_of(variable: str) -> tuple[str, ...]:
    """Return the path of the key that a variable sets; the reverse of `variable_name`."""
    return tuple(variable.removeprefix(ENV_PREFIX).lower().split("__"))


def key_name(path: KeyPath) -> str:
    """Return the key at *path* as a file spells it: its table, then its name."""
    (*tables, key), inside = _split(path)
    table = ".".join(map(toml_key, tables))
    return (f"[{table}] " if table else "") + toml_key(key) + inside


def _split(path: KeyPath) -> tuple[tuple[str, ...], str]:
    """Split *path* at its first list index: the keys before it, and the rest in words."""
    count = next((n for n, part in enumerate(path) if isinstance(part, int)), len(path))
    inside = [f"element {part + 1}" if isinstance(part, int) else part for part in path[count:]]
    return tuple(map(str, path[:count])), "".join(f", {part}" for part in inside)


def line_of(text: str, path: KeyPath) -> int | None:
    """Return the line, from 1, of the key at *path*, or of the nearest table around it."""
    best, nearest_line, path = 0, None, tuple(map(str, path))
    for line, keys in _statements(text):
        shared = min(len(keys), len(path))
        if shared > best and keys[:shared] == path[:shared]:
            best, nearest_line = shared, line
    return nearest_line


def _statements(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the first line of each header and each key, with its whole path."""
    lines, start = text.split("\n"), 0
    table: tuple[str, ...] = ()
    for end in range(1, len(lines) + 1):
        # A value may have many lines: it ends as soon as the text so far is valid TOML.
        try:
            keys = statement_keys(parse_toml("\n".join(lines[start:end])))
        except ValueError:
            continue
        if lines[start].lstrip().startswith("["):
            table, keys = keys, ()
        if table or keys:
            yield start + 1, (*table, *keys)
        start = end


def parse_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML text.

    Raises:
        ValueError: It is not TOML.
    """
    import tomllib  # noqa: PLC0415  - many users have no configuration file

    return tomllib.loads(text)


def statement_keys(value: Any) -> tuple[str, ...]:
    """Return the keys of one parsed TOML statement, also through inline tables with one key."""
    keys: list[str] = []
    while isinstance(value, dict) and len(cast("dict[str, Any]", value)) == 1:
        ((key, value),) = cast("dict[str, Any]", value).items()
        keys.append(key)
        if isinstance(value, list) and value:  # [[table]]
            value = cast("Any", value)[0]
    return tuple(keys)


def toml_key(key: str) -> str:
    """Return *key*, in quotes if TOML requires them."""
    return key if _BARE_KEY.fullmatch(key) else toml_value(key)


def toml_value(value: object) -> str:
    """Return JSON data as TOML on one line, without nulls, which TOML does not have."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        pairs = [f"{toml_key(k)} = {toml_value(item)}" for k, item in items if item is not None]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        elements = cast("Sequence[object]", value)
        return f"[{', '.join(toml_value(item) for item in elements if item is not None)}]"
    if isinstance(value, str):
        # JSON and TOML escape the same characters, except for a few, which `printable` escapes.
        return printable(json.dumps(value, ensure_ascii=False))
    return str(value).lower()  # booleans are lowercase; TOML writes numbers as Python does


def counts_as_set(name: str, value: str | None) -> bool:
    """Return True if a variable has a value; an empty value counts for keys of plugins only."""
    value = value or ""
    if not value.strip():
        return name.upper().startswith(f"{ENV_PREFIX}PLUGINS__")
    return not value.startswith(_PLACEHOLDER)


def from_json(text: str) -> Any:
    """Return the list or the table in a JSON text; any other text unchanged."""
    if text.lstrip().startswith(("[", "{")):
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return text


# The names are known only after the plugin's import. A misspelt one is ignored, since it looks like
# a variable of another program.
def own_variables(model: type[BaseModel]) -> dict[Keys, Variable]:
    """Return the `Variable` of each key that declares one, also in inner tables."""
    return {
        path: item
        for path, info in _fields(model)
        for item in (*info.metadata, *_metadata(info.annotation))
        if isinstance(item, Variable)
    }


def plugin_variables(model: type[BaseModel]) -> dict[Keys, str]:
    """Return the names of the `own_variables`, by key."""
    return {path: variable.name for path, variable in own_variables(model).items()}


def with_variables(layers: Layers, plugin: str, model: type[BaseModel]) -> Layers:
    """Return the layers with the values of a plugin's own variables."""
    fields, variables = dict(_fields(model)), plugin_variables(model)

    def complete(layer: Layer) -> Layer:
        values, texts, names = layer.values, dict[str, str](), dict[Keys, str]()
        for path, name in variables.items():
            text = layer.others.get(name.upper(), "")
            if counts_as_set(name, text):
                keys = ("plugins", plugin, *path)
                value = from_json(text) if takes_json(fields[path].annotation) else text
                values = merged(values, nested(keys, value))
                texts[name], names[keys] = text, name
        return replace(
            layer,
            values=values,
            variables={**layer.variables, **texts},
            own_names={**layer.own_names, **names},
        )

    return Layers(tuple(map(complete, layers.ordered))) if variables else layers


def plugin_options(
    layers: Layers, plugin: str, model: type[BaseModel], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the options of a plugin with the values of its variables and with absolute paths.

    A relative path, alone or in a list, starts in the folder of the file that sets it, otherwise in
    the working directory. A blank path counts as not set.

    Args:
        layers: The result of `with_variables`.
        options: The plugin's table, as the host read it.

    Raises:
        ConfigError: A path is in the home folder of an unknown user.
    """
    result = dict(options)
    for path in plugin_variables(model):
        keys = ("plugins", plugin, *path)
        if layer := layers.source(keys):
            result = merged(result, nested(path, layer.value(keys)))
    for name, info in model.model_fields.items():
        key = _key(name, info)
        keys = ("plugins", plugin, key)
        layer = layers.source(keys)
        if key in result and holds_paths(info.annotation):
            folder = (layer.folder if layer else Path()).absolute()
            value = result.pop(key)
            if not isinstance(value, str) or value.strip():
                result[key] = absolute(value, folder, partial(layers.where, keys))
    return result


def absolute(value: Any, folder: Path, where: Callable[[], str]) -> Any:
    """Make a path or a list of paths absolute; leave any other value to validation.

    Args:
        where: Returns the source and the key of the path. It is called for an error only, since it
            takes milliseconds to find the line of a key.

    Raises:
        ConfigError: The path is in the home folder of an unknown user.
    """
    if isinstance(value, list):
        return [absolute(item, folder, where) for item in cast("list[object]", value)]
    return str(folder / expand_home(Path(value), where)) if isinstance(value, str) else value


def expand_home(path: Path, where: Callable[[], str]) -> Path:
    """Return *path* with ``~`` replaced by the home folder. See `absolute`."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        reason = str(error).rstrip(".")
        raise ConfigError(f"{where()}: {path}: {reason}; write the whole path") from None


def holds_paths(annotation: object) -> bool:
    """Return True if a type is a path, an optional path, or a list of paths."""
    return annotation is Path or any(map(holds_paths, get_args(annotation)))


def _fields(model: type[BaseModel], prefix: Keys = ()) -> Iterator[tuple[Keys, FieldInfo]]:
    """Yield the fields of a table and of its inner tables, with their paths."""
    for name, info in model.model_fields.items():
        path = (*prefix, _key(name, info))
        yield path, info
        if is_table(info.annotation):
            yield from _fields(info.annotation, path)


def _key(name: str, info: FieldInfo) -> str:
    """Return the key that sets a field of a model."""
    return info.validation_alias if isinstance(info.validation_alias, str) else name


def _metadata(annotation: object) -> Iterator[object]:
    """Yield the metadata of `Annotated` within a type, as in ``Annotated[...] | None``."""
    for argument in get_args(annotation):
        yield from getattr(argument, "__metadata__", ())
        yield from _metadata(argument)
