"""Describe the configuration as JSON Schema, as table rows, and as a commented file.

All three are derived from the settings models; the docstrings of these describe the keys.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from .layers import own_variables, toml_value
from .models.settings import Settings

Schema = dict[str, Any]

_MAX_DEPTH: Final = 4
"""The depth at which nested tables and lists are no longer followed: a type may contain itself."""

_HEAD: Final = """\
# Configuration of standards-mcp. Every key is listed with its default. To set one, remove the '# '
# before it and before its [table]; write a value for '...' and a name for '<...>'."""
_PLACEHOLDERS: Final = {
    "arguments": "<argument>",
    "overrides": '"<name>"',
    "plugins": "<plugin>",
    "profiles": "<profile>",
    "servers": "<server>",
}


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the configuration.

    Attributes:
        table: The table of the key as TOML, such as ``tools.overrides."<name>"``; empty at the top.
        default: The default as TOML, or empty.
        required: True if the file or a variable must set the key.
        secret: True if the value is declared as a secret, or contains one.
    """

    table: str
    name: str
    kind: str
    default: str
    description: str
    required: bool = False
    secret: bool = False


def config_schema(plugins: Mapping[str, type[BaseModel]]) -> Schema:
    """Return the JSON Schema of a configuration file, for editors to check and complete it.

    Args:
        plugins: The settings models of the installed plugins, by the plugins' names.
    """
    schema = _schema(plugins)
    for section in schema["properties"]["plugins"]["properties"].values():
        section.pop("required", None)  # a variable can set the key in place of the file
    return schema


def _schema(plugins: Mapping[str, type[BaseModel]]) -> Schema:
    schema = Settings.model_json_schema()
    host_keys = schema["$defs"]["PluginSection"]["properties"]
    sections: Schema = {}
    for name, model in plugins.items():
        own = _plugin_schema(name, model)
        schema["$defs"] |= own.pop("$defs", {})
        sections[name] = own | {"properties": host_keys | own.get("properties", {})}
    schema["properties"]["plugins"] |= {"properties": sections}
    schema |= {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "standards-mcp"}
    return schema


def config_keys(plugins: Mapping[str, type[BaseModel]]) -> Iterator[Key]:
    """Yield every key, table by table."""
    schema = _schema(plugins)
    yield from _keys(schema, schema["$defs"], "")


def config_template(plugins: Mapping[str, type[BaseModel]]) -> str:
    """Return a configuration file that changes nothing: every key explained, and commented out."""
    lines = [_HEAD]
    table = ""
    variables_only = {
        ("plugins", name, *path)
        for name, model in plugins.items()
        for path, variable in own_variables(model).items()
        if variable.only
    }
    for key in config_keys(plugins):
        if (*key.table.split("."), key.name) in variables_only:
            continue  # invalid in a file
        if key.table != table:
            table = key.table
            # Commented out, since the table is invalid without a key, or without its plugin.
            mark = "# " if "<" in table or table.startswith("plugins.") or key.required else ""
            lines += ["", f"{mark}[{table}]"]
        lines += ["", *(f"# {line}" for line in textwrap.wrap(key.description, 94))]
        lines.append(f"# {key.name} = {key.default or '...'}")
    return "\n".join(lines) + "\n"


def _plugin_schema(name: str, model: type[BaseModel]) -> Schema:
    """Return the schema of a plugin's keys; its definitions have the plugin's name as prefix."""
    reference = f"#/$defs/{name}.{{model}}"
    try:
        own = model.model_json_schema(ref_template=reference, schema_generator=_AnyIfNotExpressible)
    except PydanticUserError:
        return {"type": "object"}
    own["$defs"] = {f"{name}.{key}": value for key, value in own.get("$defs", {}).items()}
    return own


class _AnyIfNotExpressible(GenerateJsonSchema):
    """Accepts any value where JSON Schema cannot express a plugin's own validator."""

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> Schema:
        del schema, error_info
        return {}

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Ignore a default that JSON cannot express: the key is listed without it."""


def _keys(schema: Schema, definitions: Schema, table: str, depth: int = 0) -> Iterator[Key]:
    inner: dict[str, Schema] = {}
    for name, unresolved in schema.get("properties", {}).items():
        resolved = _resolved(unresolved, definitions)
        path = f"{table}.{name}" if table else name
        tables = dict(_tables(path, resolved, definitions)) if depth < _MAX_DEPTH else {}
        inner |= tables
        if not tables:
            yield Key(
                table,
                name,
                kind=_kind(unresolved, definitions),
                default="" if (value := unresolved.get("default")) is None else toml_value(value),
                description=resolved.get("description", ""),
                required=name in schema.get("required", ()),
                secret=_is_secret(unresolved, definitions),
            )
    for path, resolved in inner.items():
        yield from _keys(resolved, definitions, path, depth + 1)


def _tables(path: str, schema: Schema, definitions: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the tables below a key, with their paths; a plain value has none."""
    additional = schema.get("additionalProperties")
    if not isinstance(additional, dict):
        if "properties" in schema:
            yield path, schema
        return
    for name, unresolved in schema.get("properties", {}).items():
        yield f"{path}.{name}", _resolved(unresolved, definitions)
    entry = _resolved(cast("Schema", additional), definitions)
    if "properties" in entry:
        yield f"{path}.{_PLACEHOLDERS.get(path.rpartition('.')[2], '<name>')}", entry


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    """Return *schema* with its reference resolved, and without null as an alternative."""
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if len(options) == 1:
        schema = {**schema, **options[0]}
    if reference := schema.get("$ref"):
        return {**definitions[str(reference).rpartition("/")[2]], **schema}
    return schema


def _kind(unresolved: Schema, definitions: Schema, depth: int = 0) -> str:
    schema = _resolved(unresolved, definitions)
    if depth > _MAX_DEPTH:
        return "any"
    if "enum" in schema:
        return " or ".join(json.dumps(each) for each in schema["enum"])
    if options := schema.get("anyOf") if "type" not in schema else None:
        others = (each for each in options if each.get("type") != "null")
        kinds = [_kind(each, definitions, depth + 1) for each in others]
        return " or ".join(dict.fromkeys(kinds))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}), definitions, depth + 1)}s"
    if schema.get("format") == "path":
        return "path"
    return "table" if kind == "object" else str(kind)


def _is_secret(unresolved: Schema, definitions: Schema, depth: int = 0) -> bool:
    """Return True if a value, one of its alternatives or its elements are secret."""
    schema = _resolved(unresolved, definitions)
    if depth > _MAX_DEPTH or schema.get("writeOnly"):
        return depth <= _MAX_DEPTH
    inner: list[object] = [
        *schema.get("anyOf", ()),
        schema.get("items"),
        schema.get("additionalProperties"),
    ]
    return any(
        _is_secret(cast("Schema", part), definitions, depth + 1)
        for part in inner
        if isinstance(part, dict)
    )
